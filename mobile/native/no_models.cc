// Replaces the models.cc that `wherry package` writes: none is linked in.
extern "C" {
extern const void* const wherry_linked_models[];
const void* const wherry_linked_models[] = {nullptr};
}
