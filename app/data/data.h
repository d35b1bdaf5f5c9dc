// The JSON files of this folder as C++ strings. Python reads the files directly; `make generated`
// writes texts.cc.
#ifndef WHERRY_APP_DATA_DATA_H_
#define WHERRY_APP_DATA_DATA_H_

namespace wherry::app::data {

extern const char* const kReasoningMarks;
extern const char* const kRequestFields;
extern const char* const kToolFamilies;

}  // namespace wherry::app::data

#endif  // WHERRY_APP_DATA_DATA_H_
