#include "vm/vm_model.h"

#include <memory>
#include <utility>

#include "support/error.h"
#include "support/hash.h"
#include "vm/opened_library.h"
#include "vm/tower.h"
#include "vm/vm_session.h"

namespace wherry {

namespace {

class VmModel : public Model {
 public:
  explicit VmModel(std::shared_ptr<const VmShared> shared) : shared_(std::move(shared)) {}
  const Metadata& metadata() const override { return shared_->metadata; }
  uint64_t identity() const override { return shared_->identity; }
  TowerSpec tower() const override {
    const Metadata& text = shared_->metadata;
    if (!shared_->tower) {
      throw Error(
          WHERRY_INVALID_ARGUMENT,
          concat(text.name, " was loaded without its tower: give its library as \"vision\""));
    }
    const Metadata& tower = shared_->tower->metadata();
    if (tower.image_features != text.image_features) {
      throw Error(WHERRY_INCOMPATIBLE,
                  concat("the tower gives rows of ", tower.image_features, " elements, ", text.name,
                         " takes ", text.image_features));
    }
    return {tower.patch, tower.patches_per_row, tower.takes("positions") ? tower.position_taps : 0,
            tower.takes("position_weights"), tower.takes("coordinates")};
  }
  std::unique_ptr<Session> open(const SessionLimits& limits) const override {
    return open_vm_session(shared_, limits);
  }

 private:
  std::shared_ptr<const VmShared> shared_;
};

}  // namespace

std::shared_ptr<const Model> load_vm_model(const std::string& lib, const std::string& weights,
                                           const std::string& device, const ModelOptions& options) {
  OpenedLibrary opened(lib, device, options);
  opened.load(weights, options);
  if (!options.vision.empty()) {
    opened.shared->tower = std::make_shared<Tower>(weights, device, options);
  }
  return std::make_shared<VmModel>(opened.shared);
}

struct VmLoader::Parts {
  Parts(const std::string& lib, const std::string& index, const std::string& device,
        const ModelOptions& options)
      : opened(lib, device, options),
        cache(TensorCache::parse(index)),
        params(opened.shared->metadata, cache, opened.shared->device, opened.packer()) {
    if (!options.vision.empty()) {
      throw Error(WHERRY_INVALID_ARGUMENT,
                  "\"vision\": weights that arrive in pieces are those of text alone");
    }
    const std::string& metadata = opened.shared->metadata.json;
    opened.shared->identity = Hash().number(opened.hash).text(metadata).text(index).value();
  }

  OpenedLibrary opened;
  TensorCache cache;
  StreamedParams params;
};

VmLoader::VmLoader(const std::string& lib, const std::string& index, const std::string& device,
                   const ModelOptions& options)
    : parts_(std::make_unique<Parts>(lib, index, device, options)) {}
VmLoader::~VmLoader() = default;

const TensorCache& VmLoader::index() const { return parts_->cache; }
StreamedParams& VmLoader::params() { return parts_->params; }
std::shared_ptr<const Model> VmLoader::finish() {
  parts_->opened.finish(parts_->params.finish());
  return std::make_shared<VmModel>(parts_->opened.shared);
}

}  // namespace wherry
