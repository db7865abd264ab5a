"""Runs the kernels' PTX, instruction by instruction, on the host, against what check.h says: there is no GPU in CI.

Arguments: the C++ compiler. Each PTX instruction becomes a statement of C++; one that is not known here fails the test."""
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[3]
ptx = (root / "replay/engines/nccl_kernels.ptx").read_text()
TYPES = {"u8": "std::uint8_t", "s8": "std::int8_t", "u16": "std::uint16_t", "u32": "std::uint32_t", "u64": "std::uint64_t", "s16": "std::int16_t", "s32": "std::int32_t", "s64": "std::int64_t",
         "b16": "std::uint16_t", "b32": "std::uint32_t", "b64": "std::uint64_t", "f64": "double", "pred": "bool"}
REGISTERS = {"p": "pred", "rs": "b16", "r": "b32", "rd": "b64", "fd": "f64"}
SPECIAL = {"%tid.x": "tid", "%ntid.x": "ntid", "%ctaid.x": "ctaid", "%nctaid.x": "nctaid"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
UNORDERED = {"ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}  # true of what is no number: the contrary is not
BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}


def type_of(register):
    return TYPES[REGISTERS[re.match(r"%([a-z]+)\d", register)[1]]]


def value(operand, kind):
    """An operand as a value of a PTX type."""
    operand = operand.strip()
    if operand in SPECIAL:
        return SPECIAL[operand]
    if operand.startswith("0d"):
        return f"std::bit_cast<double>({int(operand[2:], 16)}ULL)"
    if operand.startswith("%"):
        return f"As<{TYPES[kind]}>({operand[1:]})"
    if re.fullmatch(r"-?\d+", operand):
        return f"static_cast<{TYPES[kind]}>({int(operand) & (1 << 64) - 1}ULL)"
    return f"reinterpret_cast<std::uint64_t>({operand})"  # the address of a parameter


def place(operand):
    base, offset = re.fullmatch(r"\[([%\w]+)(?:\+(-?\d+))?\]", operand.strip()).groups()
    address = f"{base[1:]}" if base.startswith("%") else f"reinterpret_cast<std::uint64_t>({base})"
    return f"({address} + {offset or 0})"


def statement(words, operands):
    name, kind = words[0], words[-1]
    to = operands[0].strip().lstrip("%")
    store = lambda text: f"{to} = As<{type_of('%' + to)}>({text});"
    arguments = [value(operand, kind) for operand in operands[1:]] if name not in ("ld", "st", "atom", "selp", "cvt") else []
    if name == "ld":
        registers = re.findall(r"%\w+", operands[0]) if "{" in operands[0] else ["%" + to]
        return " ".join(f"{r[1:]} = As<{type_of(r)}>(Load<{TYPES[kind]}>({place(operands[1])} + {i} * sizeof({TYPES[kind]})));" for i, r in enumerate(registers))
    if name == "st":
        return f"Store<{TYPES[kind]}>({place(operands[0])}, {value(operands[1], kind)});"
    if name == "atom":
        change = {"min": "std::min(was, by)", "add": "was + by"}[words[2]]
        return store(f"Exchange({place(operands[1])}, [](std::uint64_t was, std::uint64_t by) {{ return {change}; }}, {value(operands[2], kind)})")
    if name in ("mov", "cvta"):
        return store(arguments[0])
    if name == "cvt":
        return store(f"static_cast<{TYPES[words[-2]]}>({value(operands[1], kind)})")
    if name == "setp" and words[1] in UNORDERED:
        return store(f"!({arguments[0]} {UNORDERED[words[1]]} {arguments[1]})")
    if name == "setp":
        return store(f"{arguments[0]} {COMPARE[words[1]]} {arguments[1]}")
    if name == "selp":
        return store(f"{operands[3].strip()[1:]} ? {value(operands[1], kind)} : {value(operands[2], kind)}")
    if name == "not":
        return store(f"static_cast<{TYPES[kind]}>(~{arguments[0]})")
    if name == "neg":
        return store(f"-{arguments[0]}")
    if name == "abs":
        return store(f"std::fabs({arguments[0]})")
    if name == "fma":
        return store(f"std::fma({', '.join(arguments)})")
    if name == "mul" and words[1] == "wide":
        wide = {"u32": "std::uint64_t", "s32": "std::int64_t"}[kind]
        return store(f"static_cast<{wide}>({arguments[0]}) * static_cast<{wide}>({arguments[1]})")
    if name == "mul" and words[1] == "hi":
        assert kind == "u64"
        return store(f"static_cast<std::uint64_t>((static_cast<unsigned __int128>({arguments[0]}) * {arguments[1]}) >> 64)")
    if name in ("shl", "shr"):
        by = value(operands[2], "u32")
        return store(f"{by} >= {int(kind[1:])} ? {TYPES[kind]}{{0}} : static_cast<{TYPES[kind]}>({arguments[0]} {BINARY[name]} {by})")
    return store(f"static_cast<{TYPES[kind]}>({arguments[0]} {BINARY[name]} {arguments[1]})")


def function(body):
    """Declarations of its registers, and its statements."""
    lines, registers = [], []
    for line in body.splitlines():
        line = line.strip()
        if declared := re.fullmatch(r"\.reg \.\w+\s+%([a-z]+)<(\d+)>;", line):
            registers += [f"{TYPES[REGISTERS[declared[1]]]} {declared[1]}{i} = {{}};" for i in range(int(declared[2]))]
        elif label := re.fullmatch(r"([$\w]+):", line):
            lines.append(f"{label[1]}:;")
        elif line:
            guard, instruction = re.fullmatch(r"(?:@(!?%p\d+)\s+)?(.*);", line).groups()
            condition = f"if ({guard.replace('%', '')}) " if guard else ""
            head, *rest = instruction.split(None, 1)
            words, rest = head.split("."), "".join(rest)
            if words[0] == "bra":
                lines.append(f"{condition}goto {rest};")
            elif words[0] == "ret":
                lines.append(f"{condition}return;")
            else:
                operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]\s]+", rest)
                lines.append(f"{condition}{{ {statement(words, operands)} }}")
    return registers, lines


program = """#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
#include "replay/engines/host_data.h"
template <class To, class From> To As(From from) {
  if constexpr (std::is_same_v<To, From>) return from;
  else if constexpr (std::is_floating_point_v<From> || std::is_floating_point_v<To>) return std::bit_cast<To>(from);
  else return static_cast<To>(from);
}
template <class T> T Load(std::uint64_t at) { T value; std::memcpy(&value, reinterpret_cast<void*>(at), sizeof(T)); return value; }
template <class T> void Store(std::uint64_t at, T value) { std::memcpy(reinterpret_cast<void*>(at), &value, sizeof(T)); }
template <class Change> std::uint64_t Exchange(std::uint64_t at, Change change, std::uint64_t by) {
  const auto was = Load<std::uint64_t>(at);
  Store<std::uint64_t>(at, change(was, by));
  return was;
}
"""
for name, parameters, body in re.findall(r"\.visible \.entry (\w+)\(([^)]*)\)\s*\{(.*?)^\}", ptx, re.S | re.M):
    registers, lines = function(body)
    names = re.findall(r"(\w+_param_\d+)", parameters)
    arguments = ", ".join([f"const void* {one}" for one in names] + ["std::uint32_t tid, std::uint32_t ntid, std::uint32_t ctaid, std::uint32_t nctaid"])
    program += f"void {name}({arguments}) {{\n" + "\n".join(registers + lines) + "\n}\n"
program += r"""
using namespace inquest;
int main() {
  int runs = 0;
  constexpr std::uint32_t kThreads = 7, kBlocks = 3;
  for (int operation = 0; operation <= static_cast<int>(Operation::kBarrier); ++operation)
    for (const DatatypeRow& type : kDatatypes)
      for (int redop = 0; redop < 5; ++redop)
        for (int number = 0; number < 4; ++number) {
          // As many ranks as overflow a sum of 8 bits too.
          const int nranks = number < 3 ? 3 : 40, rank = number % 3;
          const DataShape shape{{.operation = static_cast<Operation>(operation), .count = operation == 9 ? 1U : 53U, .datatype = type.type,
                                 .redop = static_cast<RedOp>(redop), .root = 1, .peer = 2}, rank, nranks};
          const ElementPattern pattern = PatternOf(shape, 4);
          const auto threads = [&](auto thread) {
            for (std::uint32_t block = 0; block < kBlocks; ++block)
              for (std::uint32_t one = 0; one < kThreads; ++one) thread(one, block);
          };
          std::vector<std::byte> wanted(BytesIn(shape)), got(BytesIn(shape));
          std::uint64_t elements = wanted.size() / type.bytes;
          FillInput(shape, 4, wanted);
          std::uint64_t at = reinterpret_cast<std::uint64_t>(got.data());
          threads([&](std::uint32_t one, std::uint32_t block) { inquest_fill(&pattern, &elements, &at, one, kThreads, block, kBlocks); });
          if (got != wanted) return std::printf("fill differs: operation %d, type %s, rank %d\n", operation, type.name.data(), rank), 1;
          // What is right, with as many elements changed, and of an average one bit off, which rounding may be.
          std::vector<std::byte> output(BytesOut(shape));
          elements = output.size() / type.bytes;
          for (std::uint64_t i = 0; i < elements; ++i) {
            std::uint64_t bits = OutputElement(pattern, i);
            if (i % 3 == 1) bits ^= 1;
            if (i % 7 == 5) bits ^= 1ULL << (type.bytes * 8 - 1 - i % 4);
            std::memcpy(&output[i * type.bytes], &bits, type.bytes);
          }
          for (const bool changed : {true, false}) {
            if (!changed)
              for (std::uint64_t i = 0; i < elements; ++i) {
                const std::uint64_t bits = OutputElement(pattern, i);
                std::memcpy(&output[i * type.bytes], &bits, type.bytes);
              }
            const DataFaults right = VerifyElements(pattern, {0, elements, 1}, 0, output.data());
            DataFaults found;
            at = reinterpret_cast<std::uint64_t>(output.data());
            const DataFaults* const faults = &found;
            threads([&](std::uint32_t one, std::uint32_t block) { inquest_verify(&pattern, &elements, &at, &faults, one, kThreads, block, kBlocks); });
            if (found.elements != right.elements || found.first != right.first || (changed ? elements > 7 && found.elements == 0 : found.elements != 0))
              return std::printf("verify differs: operation %d, type %s, rank %d: %llu %llu\n", operation, type.name.data(), rank, found.elements, right.elements), 1;
          }
          ++runs;
        }
  std::printf("%d patterns\n", runs);
}
"""
with tempfile.TemporaryDirectory() as folder:
    source = pathlib.Path(folder) / "kernels.cc"
    source.write_text(program)
    made = subprocess.run([sys.argv[1], "-std=c++20", "-O0", "-w", "-fno-strict-aliasing", f"-I{root}", source, root / "replay/engines/host_data.cc", root / "replay/ops.cc", "-lfmt", "-o", f"{folder}/kernels"],
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:4000]
    done = subprocess.run([f"{folder}/kernels"], capture_output=True, text=True, timeout=120)
    print(done.stdout)
    assert done.returncode == 0, done
