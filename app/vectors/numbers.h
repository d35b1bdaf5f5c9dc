// What becomes of a model's results: embeddings of length 1, probabilities, similarities. Sums run
// in order and in float64.
#ifndef WHERRY_APP_VECTORS_NUMBERS_H_
#define WHERRY_APP_VECTORS_NUMBERS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "app/vectors/head.h"

namespace wherry::app {

using Floats = std::vector<float>;

// Throws Error(WHERRY_INTERNAL) if a value is NaN or infinite.
void require_finite(const Floats& values);
// Returns the vector scaled to length 1; a vector of zeros stays.
Floats unit(Floats values);
// Returns the embedding's leading dimensions (0: all), scaled to length 1 if the model says so.
Floats embedding_of(Floats values, const Head& head, size_t dimensions);
// Returns what the head's activation makes of logits, one number for each class.
std::vector<double> probabilities(const Floats& logits, Activation activation);
// Returns the cosine similarity of two embeddings, as the head scales them.
double cosine(const Floats& a, const Floats& b, const Head& head);
// Returns the probability of yes among yes and no, from their log-probabilities.
double probability(double yes, double no);
// Encodes values as little-endian float32 in base64.
std::string in_base64(const Floats& values);

}  // namespace wherry::app

#endif  // WHERRY_APP_VECTORS_NUMBERS_H_
