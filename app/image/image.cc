#include "app/image/image.h"

#include <stdexcept>

#include "app/image/processors.h"
#include "app/value/json_text.h"
#include "support/blake2b.h"

namespace wherry::app {
namespace {

template <typename Element>
void hash_elements(Blake2b& hash, const std::vector<Element>& elements) {
  hash.number(elements.size());
  hash.bytes(elements.data(), elements.size() * sizeof(Element));
}

// Hashes all that the tower gets for a tile: equal digests are equal features.
Blake2b::Digest digest_of(const Tile& tile, const Levels& levels) {
  Blake2b hash;
  hash.text("wherry image tile 2").number(tile.patch_count).number(tile.rows).number(tile.taps);
  hash.bytes(levels.data(), sizeof levels);
  hash_elements(hash, tile.positions);
  hash_elements(hash, tile.position_weights);
  hash_elements(hash, tile.coordinates);
  hash_elements(hash, tile.patches);
  return hash.finish();
}

}  // namespace

std::unique_ptr<ImageProcessor> ImageProcessor::create(const json::Value& settings) {
  const json::Value* type = settings.is_dict() ? settings.dict().find("model_type") : nullptr;
  const std::string name = type != nullptr && type->is_string() ? type->text() : "";
  if (name == "gemma3") return create_gemma_processor(settings);
  if (name == "idefics3" || name == "smolvlm") return create_tile_processor(settings);
  if (name == "lfm2_vl") return create_lfm_processor(settings);
  if (name == "pixtral") return create_pixtral_processor(settings);
  if (name == "qwen3_vl") return create_qwen_processor(settings);
  throw std::invalid_argument("wherry-vision.json has model_type " +
                              (type == nullptr ? "missing" : json::to_json(*type)) +
                              "; accepted: gemma3, idefics3, lfm2_vl, pixtral, qwen3_vl, smolvlm");
}

PreparedImage ImageProcessor::prepare(const RgbImage& image, Detail detail) const {
  check_image_size(image.width, image.height);
  if (image.pixels.size() != static_cast<size_t>(image.width) * image.height * 3) {
    throw std::invalid_argument("the image has " + std::to_string(image.pixels.size()) +
                                " bytes, not 3 for each of its pixels");
  }
  PreparedImage result = compute(image, detail);
  for (Tile& tile : result.tiles) tile.digest = digest_of(tile, result.levels);
  for (PromptPart& part : result.prompt) {
    if (part.tile >= 0 && part.rows == 0) part.rows = result.tiles[part.tile].rows;
  }
  return result;
}

void check_image_size(int64_t width, int64_t height) {
  const std::string size =
      "the image has " + std::to_string(width) + " x " + std::to_string(height) + " pixels; ";
  if (width < 1 || height < 1) throw std::invalid_argument(size + "at least 1 x 1 is required");
  if (width > kMaximumImageSide || height > kMaximumImageSide) {
    throw std::invalid_argument(size + "a side may have " + std::to_string(kMaximumImageSide));
  }
  if (width * height > kMaximumImagePixels) {
    throw std::invalid_argument(size + "an image may have " + std::to_string(kMaximumImagePixels));
  }
}

}  // namespace wherry::app
