// Compares XXH64 with the reference implementation, xxhash.xxh64 in Python.
#include "support/checksum.h"

#include <set>
#include <vector>

#include "testing/testing.h"

namespace wherry {
namespace {

std::vector<uint8_t> data_of(size_t n) {
  std::vector<uint8_t> data(n);
  for (size_t i = 0; i < n; ++i) data[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return data;
}

TEST(known_values) {
  const struct {
    size_t n;
    uint64_t plain, seeded;  // expected checksums with the seeds 0 and 2654435761
  } cases[] = {
      {0, 0xEF46DB3751D8E999u, 0xAC75FDA2929B17EFu},
      {3, 0x9FF70A635A6209ABu, 0xECF3373C29E497D4u},
      {31, 0x0F187C62B1E722B7u, 0xA2BA2580312F0F94u},
      {32, 0x91B0CB0931A8C629u, 0xBA4945101354E701u},
      {33, 0x931B043CF8D65B94u, 0x1F245ED9DDE2A6C8u},
      {44, 0xA9AF7C776B75EF86u, 0x31993F33F4FB5BC2u},
      {1000, 0x698399D62F9C1695u, 0x54BF4105274D8346u},
  };
  for (const auto& each : cases) {
    CHECK_EQ(checksum64(data_of(each.n).data(), each.n), each.plain);
    CHECK_EQ(checksum64(data_of(each.n).data(), each.n, 2654435761u), each.seeded);
  }
}

TEST(every_bit_counts) {
  std::vector<uint8_t> data = data_of(200);
  std::set<uint64_t> seen{checksum64(data.data(), data.size())};
  for (size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    CHECK(seen.insert(checksum64(data.data(), data.size())).second);
    data[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace wherry
