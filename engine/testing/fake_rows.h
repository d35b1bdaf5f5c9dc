// What the layers of the model for tests keep of a row in a token's place, which depends on images,
// on the row's place on M-RoPE's axes, and on later rows that it attends to. Text keeps its tokens.
#ifndef WHERRY_ENGINE_TESTING_FAKE_ROWS_H_
#define WHERRY_ENGINE_TESTING_FAKE_ROWS_H_

#include <cstdint>
#include <vector>

#include "testing/fake_options.h"
#include "wherry.h"

namespace wherry {

// Returns what stands for each row of a tile's features: negative numbers, which depend on all of
// the tile.
std::vector<int32_t> fake_features(const FakeOptions& options, const ImageTile& tile);

// Returns what is kept of a token at a place [3]; the token if all axes have its position.
int32_t fake_placed(int32_t token, const int32_t* place, int32_t position);

// Returns what is kept of the first of n rows that attend to all of them.
int32_t fake_attending(const int32_t* kept, int64_t n);

// Returns a prompt, and output after it, as the layers keep it.
std::vector<int32_t> with_fake_features(const FakeOptions& options,
                                        const std::vector<int32_t>& prompt,
                                        const wherry_params& params);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_ROWS_H_
