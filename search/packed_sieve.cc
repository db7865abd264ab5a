// What a sieve is made of, and how it lies in the binary: ready for use, so that starting costs nothing.
#include "search/packed_sieve.h"

#include <hs.h>

#include <cstdlib>
#include <cstring>

namespace inquest {
namespace {

// Parts, each behind its size of eight bytes and at a place that databases and tables may begin at: the two databases,
// the six tables, then the literals.
constexpr std::size_t kAligned = 64;

std::size_t Aligned(std::size_t size) { return (size + kAligned - 1) / kAligned * kAligned; }

void AppendPart(std::string& out, std::string_view part) {
  const std::uint64_t size = part.size();
  out.resize(Aligned(out.size() + sizeof size) - sizeof size);
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out += part;
}

template <class T>
void AppendTable(std::string& out, std::span<const T> table) {
  AppendPart(out, {reinterpret_cast<const char*>(table.data()), table.size_bytes()});
}

/// Takes parts from the head of the bytes, which begin at a multiple of kAligned.
class Parts {
 public:
  explicit Parts(std::string_view bytes) : bytes_(bytes) {}
  std::optional<std::string_view> Take() {
    std::uint64_t size = 0;
    const std::size_t begin = Aligned(at_ + sizeof size);
    if (begin > bytes_.size()) return std::nullopt;
    std::memcpy(&size, bytes_.data() + begin - sizeof size, sizeof size);
    if (size > bytes_.size() - begin) return std::nullopt;
    at_ = begin + static_cast<std::size_t>(size);
    return bytes_.substr(begin, static_cast<std::size_t>(size));
  }
  template <class T>
  bool Take(std::span<const T>& table) {
    const auto part = Take();
    if (!part || part->size() % sizeof(T) != 0) return false;
    table = {reinterpret_cast<const T*>(part->data()), part->size() / sizeof(T)};
    return true;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

// A database holds no pointers: it means the same wherever it lies, as long as that is a multiple of 64. libhs promises
// this of the form that it deserialises from only, whose checksum takes longer than all the rest of our start; so the
// form in memory is kept, tests search with it at other places than it was made at, and Unpack() asks libhs whether it
// knows it.
Result<std::string> ImageOf(const Database& db) {
  const Error error{"the sieve's database cannot be packed", "", ""};
  if (db == nullptr) return std::string();
  char* bytes = nullptr;
  std::size_t size = 0, image_size = 0;
  if (hs_serialize_database(db.get(), &bytes, &size) != HS_SUCCESS) return error;
  const std::unique_ptr<char, void (*)(void*)> owned(bytes, std::free);
  if (hs_serialized_database_size(bytes, size, &image_size) != HS_SUCCESS) return error;
  const std::unique_ptr<void, void (*)(void*)> image(std::aligned_alloc(kAligned, Aligned(image_size)), std::free);
  if (image == nullptr ||
      hs_deserialize_database_at(bytes, size, static_cast<hs_database_t*>(image.get())) != HS_SUCCESS)
    return error;
  return std::string(static_cast<const char*>(image.get()), image_size);
}

/// nullopt if this libhs cannot run it.
std::optional<Database> DatabaseOf(std::string_view image) {
  if (image.empty()) return NoDatabase();
  Database db(reinterpret_cast<const hs_database_t*>(image.data()), [](const hs_database_t*) {});
  std::size_t size = 0;
  if (hs_database_size(db.get(), &size) != HS_SUCCESS || size != image.size()) return std::nullopt;
  return db;
}

}  // namespace

void FreeCompiled(const hs_database_t* db) { hs_free_database(const_cast<hs_database_t*>(db)); }

Database NoDatabase() { return Database(nullptr, FreeCompiled); }

std::vector<WindowFilter::Literal> PackedSieve::literals() const {
  std::vector<WindowFilter::Literal> out;
  for (Parts parts(literals_part); const auto part = parts.Take();) {
    WindowFilter::Literal literal;
    INQUEST_CHECK(part->size() >= sizeof literal.windows);
    std::memcpy(literal.windows.data(), part->data(), sizeof literal.windows);
    literal.text = part->substr(sizeof literal.windows);
    out.push_back(std::move(literal));
  }
  return out;
}

Result<std::string> Pack(const Layer& layer, const std::vector<WindowFilter::Literal>& literals) {
  std::string out;
  for (const Database* db : {&layer.covered, &layer.anywhere}) {
    const auto image = ImageOf(*db);
    if (!image) return image.error();
    AppendPart(out, image.value());
  }
  const WindowFilter filter(literals);
  const WindowFilter::Tables& tables = filter.tables();
  AppendTable(out, tables.cells);
  AppendTable(out, tables.sixes);
  AppendTable(out, tables.first);
  AppendTable(out, tables.slots);
  AppendTable(out, tables.entries);
  AppendPart(out, tables.texts);
  std::string packed;
  for (const WindowFilter::Literal& literal : literals)
    AppendPart(packed, std::string(reinterpret_cast<const char*>(literal.windows.data()), sizeof literal.windows) +
                           literal.text);
  AppendPart(out, packed);
  return out;
}

std::optional<PackedSieve> Unpack(std::string_view bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAligned != 0) return std::nullopt;
  Parts parts(bytes);
  PackedSieve out;
  for (Database* db : {&out.layer.covered, &out.layer.anywhere}) {
    const auto part = parts.Take();
    auto loaded = part ? DatabaseOf(*part) : std::nullopt;
    if (!loaded) return std::nullopt;
    *db = std::move(*loaded);
  }
  WindowFilter::Tables& tables = out.tables;
  if (!parts.Take(tables.cells) || !parts.Take(tables.sixes) || !parts.Take(tables.first) ||
      !parts.Take(tables.slots) || !parts.Take(tables.entries))
    return std::nullopt;
  const auto texts = parts.Take(), literals = parts.Take();
  if (!texts || !literals) return std::nullopt;
  tables.texts = *texts;
  out.literals_part = *literals;
  return out;
}

}  // namespace inquest
