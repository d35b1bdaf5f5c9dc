// The empty table of linked-in models, which replaces the models.cc that `wherry package` writes.
extern "C" {
extern const void* const wherry_linked_models[];
const void* const wherry_linked_models[] = {nullptr};
}
