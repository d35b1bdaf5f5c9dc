"""Code generation for Vulkan, from WGSL to SPIR-V."""
