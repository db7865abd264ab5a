// host_limits.cc: what a host gives its processes: limits, the size of /dev/shm, the kernel and how it was booted.
// Format:  one line a fact
//            max locked memory           (kbytes, -l) 64                 (bash: ulimit -a)
//            -l: locked-in-memory size (kbytes)  64                      (zsh)       locked memory(kbytes) 64   (dash)
//            Max locked memory         65536      65536      bytes       (/proc/PID/limits; the soft one counts)
//            tmpfs            64M   60M  4.0M  94% /dev/shm              (df, with -h, -k, -m, -B1, -T)
//            shm on /dev/shm type tmpfs (rw,nosuid,nodev,size=65536k)    (mount, /proc/mounts)
//            Linux node07 5.15.0-91-generic #101-Ubuntu SMP ... x86_64 GNU/Linux      (uname -a)
//            BOOT_IMAGE=/vmlinuz-5.15 root=/dev/sda2 ro iommu=pt         (/proc/cmdline; `Command line: ` in the kernel
//            log) iommu: Default domain type: Translated                      (kernel log)
// Clock:   none.        Not read: other limits, `ulimit -l` alone (a number without a name), other file systems,
// sysctl.
#include <cmath>

#include "core/host_name.h"
#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/host_tools.h"
#include "parsers/formats/kernel.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

std::optional<HostLimit> LimitOf(HostLimit::Of of, string_view value, std::int64_t unit) {
  if (value == "unlimited") return HostLimit{.of = of, .unlimited = true, .value = 0};
  const auto number = WholeNumber(value);
  if (!number || *number < 0 || *number > kMostBytes / unit) return std::nullopt;
  return HostLimit{.of = of, .unlimited = false, .value = *number * unit};
}

std::optional<HostLimit> ReadLimit(string_view text) {
  using Of = HostLimit::Of;
  static const Pattern kBash(
      R"(^\s*(max locked memory|open files|max user processes)\s+\((?:(kbytes|bytes)(?:, )?)?(?:-[lnu])?\):? +(\d{1,18}|unlimited)\s*$)");
  static const Pattern kProc(
      R"(^\s*Max (locked memory|open files|processes)\s+(\d{1,19}|unlimited)\s+(?:\d{1,19}|unlimited)\s)");
  static const Pattern kOther(
      R"(^\s*(?:-l: locked-in-memory size \((kbytes|Kb)\)|(-n: file descriptors|nofiles)|(-u: processes)|locked memory\(kbytes\))\s+(\d{1,18}|unlimited)\s*$)");
  const auto of = [](string_view words) {
    return words.find("locked") != string_view::npos  ? Of::kLockedMemory
           : words.find("files") != string_view::npos ? Of::kOpenFiles
                                                      : Of::kProcesses;
  };
  if (const auto bash = kBash.Search(text))
    return LimitOf(of(bash->text(1)), bash->text(3), bash->text(2) == "kbytes" ? 1024 : 1);
  if (const auto proc = kProc.Search(text)) return LimitOf(of(proc->text(1)), proc->text(2), 1);
  const auto other = kOther.Search(text);
  if (!other) return std::nullopt;
  const Of which = other->has(2) ? Of::kOpenFiles : other->has(3) ? Of::kProcesses : Of::kLockedMemory;
  return LimitOf(which, other->text(4), which == Of::kLockedMemory ? 1024 : 1);
}

/// `4.0M`, `64G`, `65536k`, `0`: bytes. A number without a letter counts in `unit`.
std::optional<std::int64_t> BytesOf(string_view text, std::int64_t unit) {
  static const Pattern kSize(R"(^(\d{1,15}(?:\.\d{1,3})?)([kKMGTP]?)(?:i?B)?$)");
  const auto match = kSize.Search(text);
  const auto number = match ? WholeDecimal(match->text(1)) : std::nullopt;
  if (!number) return std::nullopt;
  const string_view letters = "kMGTP";
  const char letter = match->text(2) == "K" ? 'k' : match->text(2).empty() ? ' ' : match->text(2)[0];
  const double scale =
      letter == ' ' ? static_cast<double>(unit) : std::pow(1024.0, static_cast<double>(letters.find(letter) + 1));
  return *number * scale < static_cast<double>(kMostBytes) ? std::optional(static_cast<std::int64_t>(*number * scale))
                                                           : std::nullopt;
}

std::optional<ShmSize> ReadShm(string_view text, std::int64_t df_unit) {
  static const Pattern kDf(
      R"(^\S+(?:\s+[a-z]\w*)?\s+([\d.]+[KMGTP]?(?:i?B)?)\s+([\d.]+[KMGTP]?(?:i?B)?)\s+([\d.]+[KMGTP]?(?:i?B)?)\s+\d{1,3}% (?:/dev/shm|/run/shm)\s*$)");
  static const Pattern kMount(R"((?: on /dev/shm type tmpfs \(| /dev/shm tmpfs )\S*?\bsize=(\d{1,15}[kKmMgG]?))");
  if (const auto df = kDf.Search(text)) {
    const auto total = BytesOf(df->text(1), df_unit), free = BytesOf(df->text(3), df_unit);
    return total ? std::optional(ShmSize{*total, free}) : std::nullopt;
  }
  const auto mount = kMount.Search(text);
  if (!mount) return std::nullopt;
  std::string size(mount->text(1));
  if (size.back() == 'm' || size.back() == 'g') size.back() = static_cast<char>(size.back() - 'a' + 'A');
  const auto total = BytesOf(size, 1);
  return total ? std::optional(ShmSize{*total, std::nullopt}) : std::nullopt;
}

class HostLimitsParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (states_.ConsumePrompt(record)) return true;
    if (const auto limit = ReadLimit(record.text)) return Add(record, *limit, out);
    if (const auto shm = ReadShm(record.text, df_unit_)) return Add(record, *shm, out);
    return ConsumeDfHead(record.text) || ConsumeKernel(record, out);
  }

 private:
  bool Add(const Record& record, What what, EventSink& out) {
    states_.Add(record, std::move(what), out);
    return true;
  }

  bool ConsumeDfHead(string_view text) {
    static const Pattern kHead(R"(^Filesystem\s.*?(\d{1,7})([KMG]?)B?-blocks)");
    const auto head = kHead.Search(text);
    if (!head) return false;
    df_unit_ = BytesOf(std::string(head->text(1)) + std::string(head->text(2)), 1).value_or(1024);
    return true;
  }

  bool ConsumeKernel(const Record& record, EventSink& out) {
    static const Pattern kUname(
        R"(^(?:uname: )?Linux ([A-Za-z0-9][\w.-]{0,63}) (\d+\.\d+\S{0,64}) #.*\bGNU/Linux\s*$)");
    static const Pattern kVersion(R"(Linux version (\d+\.\d+\S{0,64}) \()");
    static const Pattern kCommand(
        R"((?:^|Command line: )((?:\S.* )?(?:BOOT_IMAGE=|root=(?:/dev/|(?:PART)?UUID=|LABEL=|ZFS=|live:)).*)$)");
    static const Pattern kDomain(R"(iommu: Default domain type: (Translated|Passthrough|passthrough|Identity))");
    if (const auto uname = kUname.Search(record.text)) {
      Record own = record;
      if (!own.origin.host || own.origin.host->basis < Basis::kObserved)
        own.origin.host = Known<std::string>{HostName(uname->text(1)).Short(), Basis::kObserved, {}};
      return Add(own, HostFact{HostFact::Of::kKernel, std::string(uname->text(2))}, out);
    }
    HostFact fact;
    if (const auto version = kVersion.Search(record.text)) {
      fact = {HostFact::Of::kKernel, std::string(version->text(1))};
    } else if (const auto domain = kDomain.Search(record.text)) {
      fact = {HostFact::Of::kIommu, std::string(domain->text(1))};
    } else if (const auto command = kCommand.Search(record.text)) {
      fact = {HostFact::Of::kCommandLine, std::string(command->text(1).substr(0, 1024))};
    } else {
      return false;
    }
    Record own = record;
    if (const KernelHead head = ReadKernelHead(record.text); !head.host.empty() && !own.origin.host)
      own.origin.host = Known<std::string>{std::string(head.host), Basis::kEnvelope, {}};
    return Add(own, std::move(fact), out);
  }

  HostStates states_;
  std::int64_t df_unit_ = 1024;  ///< what a number of df without a letter counts
};

constexpr string_view kHostLimitsMarks[] = {"max locked memory",
                                            "Max locked memory",
                                            "locked-in-memory size",
                                            "locked memory(kbytes)",
                                            "open files  ",
                                            "Max open files",
                                            "-n: file descriptors",
                                            "nofiles   ",
                                            "max user processes",
                                            "Max processes",
                                            "-u: processes",
                                            "% /dev/shm",
                                            "% /run/shm",
                                            "on /dev/shm type tmpfs",
                                            " /dev/shm tmpfs ",
                                            "-blocks ",
                                            "GNU/Linux",
                                            "Linux version ",
                                            "BOOT_IMAGE=",
                                            " root=UUID=",
                                            " root=/dev/",
                                            "Command line: ",
                                            "iommu: Default domain type: ",
                                            "$ ulimit -",
                                            "# ulimit -",
                                            "$ df -",
                                            "# df -",
                                            "$ uname -",
                                            "# uname -",
                                            "$ cat /proc/",
                                            "# cat /proc/"};

}  // namespace

extern const Format kHostLimits{.name = "host-limits",
                                .framing = Framing::kLines,
                                .component = Component::kAny,
                                .marks = kHostLimitsMarks,
                                .make = &Make<HostLimitsParser>};

}  // namespace inquest
