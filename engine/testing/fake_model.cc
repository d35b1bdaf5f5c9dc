#include "testing/fake_model.h"

#include "sampling/sampler.h"
#include "scheduling/request.h"
#include "testing/fake_logits.h"
#include "testing/fake_rows.h"
#include "testing/fake_session.h"

namespace wherry {

namespace {

Metadata metadata_of(const FakeOptions& options) {
  Metadata metadata;
  metadata.json = "{\"name\": \"fake\"}";
  metadata.name = "fake";
  metadata.vocab_size = options.vocab;
  metadata.context = options.context;
  metadata.page_size = options.page_size;
  metadata.logit_rows = options.logit_rows;
  metadata.bidirectional = options.bidirectional;
  if (options.bidirectional) {
    metadata.entries = {Entry::kEmbed};
    return metadata;
  }
  metadata.entries = {Entry::kForward};
  if (!options.window_alone) metadata.groups.push_back({});
  if (options.window > 0) metadata.groups.push_back({options.window, false});
  if (options.encoder) {
    metadata.groups.push_back({0, true});
    metadata.entries.push_back(Entry::kEncode);
  }
  if (options.embeds) metadata.entries.push_back(Entry::kEmbed);
  if (options.block) metadata.entries.push_back(Entry::kDraft);
  if (options.images) metadata.image_features = 2;
  if (options.rope_positions) metadata.inputs.push_back("rope_positions");
  if (options.last_visible) metadata.inputs.push_back("last_visible");
  if (options.recurrent) {
    StateSpec spec;
    spec.recurrent = true;
    spec.layers = 1;
    metadata.state.push_back(spec);
  }
  return metadata;
}

}  // namespace

FakeModel::FakeModel(FakeOptions given) : options(given), metadata_(metadata_of(given)) {}

TowerSpec FakeModel::tower() const { return options.images ? options.tower : Model::tower(); }

std::unique_ptr<Session> FakeModel::open(const SessionLimits& limits) const {
  return open_fake_session(*this, limits);
}

std::vector<int32_t> fake_output(const FakeOptions& options, const std::vector<int32_t>& prompt,
                                 const wherry_params& params, int64_t context) {
  Request request(0, prompt, params, options.vocab, context);
  StandardSampler sampler;
  std::vector<int32_t> output;
  for (wherry_finish finish = WHERRY_RUNNING; finish == WHERRY_RUNNING;) {
    std::vector<float> logits =
        fake_logits(options, with_fake_features(options, request.tokens, params), request.source);
    const uint32_t* mask = request.mask ? request.mask->bits() : nullptr;
    Sample sample = sampler.sample(request.sampling(), logits.data(), options.vocab, mask);
    output.push_back(sample.token);
    finish = request.append(sample);
    if (request.mask && finish != WHERRY_STOP && request.mask->accept(sample.token)) {
      finish = WHERRY_STOP;
    }
  }
  return output;
}

}  // namespace wherry
