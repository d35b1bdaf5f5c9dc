// What a model for tests is like.
#ifndef WHERRY_ENGINE_TESTING_FAKE_OPTIONS_H_
#define WHERRY_ENGINE_TESTING_FAKE_OPTIONS_H_

#include <cstdint>

#include "model/model.h"

namespace wherry {

struct FakeOptions {
  int64_t vocab = 64;
  int64_t context = 64;
  int64_t page_size = 4;
  int64_t logit_rows = 4096;
  int64_t window = 0;           // sliding window of a second group of layers; 0 for no such group
  bool window_alone = false;    // true if all groups have a window
  bool recurrent = false;       // true if the model has recurrent layers
  bool block = false;           // true if the model has a block of multi-token prediction
  bool encoder = false;         // true if the model has an encoder, with a cross group
  bool embeds = false;          // true if the model also has the entry `embed`
  bool images = false;          // true if the model takes images
  bool rope_positions = false;  // true if rows have places on M-RoPE's axes
  bool last_visible = false;    // true if the rows of an image attend to all of it
  bool bidirectional = false;   // the model only has `embed`, of a whole sequence in one step
  uint64_t seed = 0;            // other values give another model with the same vocabulary
  bool asynchronous = false;    // true if the fake device computes as late as allowed
  bool chains = false;          // whether launch-ahead is supported; requires `candidates`
  bool draws = false;           // whether the fake device can also sample tokens
  double wrong_choices = 0;     // share of device tokens that differ from sampling's
  // Candidates that the fake device returns for a row; 0 if it returns rows.
  int64_t candidates = 0;
  double error = 0;      // relative error of the candidates' sums
  bool asks = false;     // true if whole rows must be requested before row()
  double sharpness = 1;  // larger values give more peaked distributions
  // Share of texts after which the draft model, or the block, has the same most likely token.
  double agrees = 1;
  TowerSpec tower{12, 2, 1, false, false};
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_OPTIONS_H_
