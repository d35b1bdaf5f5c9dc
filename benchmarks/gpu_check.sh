#!/usr/bin/env bash
# On a machine with a GPU: checks and measures what a bundle of `make gpu-bundle` holds, in at most
# twelve minutes, without a network.
#
#   benchmarks/gpu_check.sh BUNDLE.tar.xz [RESULTS]
set -euo pipefail
bundle=$(realpath "${1:?usage: gpu_check.sh BUNDLE.tar.xz [RESULTS]}")
results=$(realpath -m "${2:-gpu-results}")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
tar -C "$place" -xJf "$bundle"
cd "$place/bundle"
export PYTHONPATH="$PWD/site" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 WHERRY_CACHE="$place/cache"
"${PYTHON:-python3}" -m benchmarks.gpu.check . "$results"
