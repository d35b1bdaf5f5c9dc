// Reads packed Unicode tables: base64 text of numbers in seven-bit groups (varints).
#ifndef WHERRY_APP_VALUE_UNICODE_PACKED_H_
#define WHERRY_APP_VALUE_UNICODE_PACKED_H_

#include <cstdint>
#include <string>

namespace wherry::unicode {

class PackedNumbers {
 public:
  explicit PackedNumbers(const char* table);
  bool done() const { return at_ == bytes_.size(); }
  uint32_t next();
  int32_t next_signed();  // reads a zigzag-coded number

 private:
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace wherry::unicode

#endif  // WHERRY_APP_VALUE_UNICODE_PACKED_H_
