#!/usr/bin/env bash
# On a machine with a GPU: checks and measures what a bundle of `make gpu-bundle` holds, in at most
# twelve minutes, without a network.
#
#   benchmarks/gpu_check.sh BUNDLE.tar.xz [RESULTS [models|kernels|large|peers|llama]...]
#
# Without parts: all but llama, which compiles llama.cpp (with nvcc and cmake) before it measures it.
set -euo pipefail
bundle=$(realpath "${1:?usage: gpu_check.sh BUNDLE.tar.xz [RESULTS [PART...]]}")
results=$(realpath -m "${2:-gpu-results}")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
tar -C "$place" -xJf "$bundle"
cd "$place/bundle"
# A machine may have a driver for Vulkan and no loader: the bundle for Vulkan brings one.
export LD_LIBRARY_PATH="$PWD/site/tvm/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PYTHONPATH="$PWD/site" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 WHERRY_CACHE="$place/cache"
"${PYTHON:-python3}" -m benchmarks.gpu.check . "$results" "${@:3}"
