# The two commands of the README, and the parts of the second.
#   make demo    install into .venv and let the demo model answer
#   make browser what `wherry package` and `wherry web` need for pages, into .venv: needs emscripten and npm
#   make check   lint, types, the C++ tests and one of everything in Python: builds the core alone, minutes
#   make test    everything that CI checks; what needs a tool of the system that is not here is skipped
#   make threads the engine's threads under ThreadSanitizer
#   make wheels  wheels for Linux and macOS that need no compiler, in dist/; accept-wheel and accept-site
#                check one, which CI does too; accept-wheel-aarch64 checks another under QEMU
#   make npm     the npm package, in dist/; make pyodide, make notebook: Python in pages, in build/
#   make release PACKAGE=DIR what apps download of a package for them: a Maven repository, a Swift package
#   make nightly the tests that take minutes, in parts of an hour at most that can be started alone
#                (nightly-sanitizers, -wheels, -models, -kernels, -compiler, -server, -apps); nightly-report
#                says which part passed on which commit
#   make one FAMILY=llama TARGET=cpu    one family against transformers, on one target
#   make cxx     the C++ tests alone

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CXX_FILES := $(shell find engine app tests/targets/metal tests/backends/metal tests/packager web/core mobile -name '*.cc' -o -name '*.h')
SOURCES := pyproject.toml CMakeLists.txt $(CXX_FILES) engine/backends/plugins.cmake
PACKAGES := app/data compiler passes quant relax_models runtime_py targets src/wherry
JOBS ?= 2
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
# What wherry.tools fetches; builds and tests find it there.
export WHERRY_TOOLS ?= $(abspath build/tools)
# Tests start Python some hundred times; without bytecode each would compile TVM's sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo browser browser-built check test cxx one threads lint lint-python lint-cxx lint-web tools core native python installed wheels build-wheels accept-wheel accept-wheel-aarch64 accept-wheel-windows accept-site release docs pictures charts npm pyodide notebook gpu-bundle gpu-check format generated clean

demo: $(VENV)/.installed
	$(BIN)/wherry run demo "Tell me a story about a fox."
	@echo && echo "That was the model demo, on this machine. Type: . $(BIN)/activate && wherry run demo"

test: lint native installed python

# One of everything: a kernel of each family, a model of each kind of block, a server and its client, a command.
SMOKE := tests/models/test_against_transformers.py::TestAgainstTransformers::test_prefill[llama] \
  tests/models/test_against_transformers.py::TestAgainstTransformers::test_prefill[qwen3_moe] \
  tests/models/test_against_transformers.py::TestAgainstTransformers::test_prefill[qwen3_5_text] \
  tests/targets/test_cpu_linear.py::test_linear tests/targets/test_cpu_attention.py::test_long_contexts \
  tests/targets/test_cpu_rows.py::test_norms tests/targets/test_cpu_recurrent.py::test_gated_delta \
  tests/targets/test_cpu_experts.py::test_expert_linear tests/targets/test_device_kernels.py::test_norms \
  tests/runtime/test_server_openai.py tests/cli/test_commands.py::TestCommands::test_run_writes_the_text_alone

# They need the core, and no device.
CHECKED := tests/quant tests/passes tests/runtime/tools tests/runtime/grammar tests/runtime/test_requests.py \
  tests/models/test_config.py tests/models/test_gemma4_config.py tests/models/test_rope.py \
  tests/models/test_weight_order.py tests/models/test_weight_plan.py tests/test_imports.py tests/test_arguments.py tests/test_includes.py \
  tests/test_pages.py tests/test_reference_pages.py

check: core
	@$(MAKE) --no-print-directory -j2 lint-python checked

.PHONY: checked
checked: $(VENV)/.checked
	PATH="$(abspath $(BIN)):$$PATH" ctest --preset dev -E random --output-on-failure --progress
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -q --tb=short $(SMOKE:%='%') $(CHECKED)

# Without npm, which is the system's, there is neither the page nor what is written in TypeScript.
NPM := $(shell command -v npm)
WEB := $(if $(NPM),web/node_modules/.package-lock.json)

lint: $(VENV)/.checked $(WEB)
	$(MAKE) --no-print-directory -j2 lint-python lint-cxx lint-web

lint-python: $(VENV)/.checked
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.lint_words
	$(BIN)/python -m tests.lint_identifiers

lint-cxx: $(VENV)/.checked
	@$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)

lint-web: $(WEB)
ifeq ($(NPM),)
	@echo "TypeScript is not linted: no npm. Type: apt-get install nodejs npm" >&2
else
	npm run --silent --prefix web lint
endif

# PyPI's and npm's: sources of xgrammar, cpp-httplib and wuffs, Kotlin's compiler, naga.
tools: $(VENV)/.checked
	PYTHONPATH=src $(BIN)/python -m wherry.tools

# The core and its C++ tests; `nightly` runs all under AddressSanitizer, those with threads under
# ThreadSanitizer, and the ten thousand random requests under both. A room is compiled as one file.
cmake = PATH="$(abspath $(BIN)):$$PATH" cmake
configure = $(cmake) --preset $(1) -DCMAKE_UNITY_BUILD=ON -DPython_EXECUTABLE="$(abspath $(BIN))/python"
tested = $(call configure,$(1)) && \
  $(cmake) --build --preset $(1) && \
  PATH="$(abspath $(BIN)):$$PATH" ctest --preset $(1) $(2)

# The part of `native` that Python's tests without devices need.
core: $(VENV)/.checked
	@$(call configure,dev) --log-level=WARNING
	@$(cmake) --build --preset dev --target wherry wherry_host wherry_readers wherry_tests -- --quiet

# With the page, which CMake leaves out where its packages are missing.
native: $(VENV)/.tested $(WEB) tools
	$(call tested,dev)

threads: $(VENV)/.tested
	$(call tested,tsan,-E random)

# On all of them; a file stays on one of them, so that its compiled models are made once. Those that take
# longest begin (tests/conftest.py), so that no core waits at the end.
python: native
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=20

# The C++ tests, without Python's.
cxx: $(VENV)/.checked
	$(call tested,dev)

# A family of tests/models/families, and a target of tests/models/test_quantized_families.py.
FAMILY ?= llama
TARGET ?= cpu
one: core
	$(BIN)/python -m pytest -q -m "nightly or not nightly" --every-device \
	  -k "$(if $(filter cpu,$(TARGET)),[$(FAMILY)],[$(FAMILY)-$(TARGET)])" \
	  tests/models/test_against_transformers.py tests/models/test_quantized_families.py

# Each part says in build/nightly which commit it passed on, or that it failed.
NIGHTLY := sanitizers wheels models kernels compiler server apps
NIGHTLY_models := tests/models tests/acceptance
NIGHTLY_kernels := tests/targets tests/backends tests/engine
NIGHTLY_compiler := tests/compiler tests/quant tests/passes tests/cli
NIGHTLY_server := tests/runtime tests/clients tests/app tests/fuzz
NIGHTLY_apps := $(filter-out tests/support $(NIGHTLY_models) $(NIGHTLY_kernels) $(NIGHTLY_compiler) $(NIGHTLY_server),\
  $(patsubst %/,%,$(wildcard tests/*/)) $(wildcard tests/test_*.py))
WITH_PYTEST := $(filter-out sanitizers wheels,$(NIGHTLY))
.PHONY: nightly nightly-report $(addprefix nightly-,$(NIGHTLY))
recorded = mkdir -p build/nightly && { { $(1); } && result=passed || result=failed; \
  echo "$@ $$(git rev-parse --short HEAD)$$(git diff --quiet HEAD || echo ' with changes') $$(date -u +%FT%TZ) $$result" \
  > build/nightly/$(@:nightly-%=%); test $$result = passed; }

nightly:
	$(MAKE) --no-print-directory --keep-going $(addprefix nightly-,$(NIGHTLY)); \
	  result=$$?; $(MAKE) --no-print-directory nightly-report; exit $$result

nightly-report:
	@cat build/nightly/*

nightly-sanitizers: $(VENV)/.tested
	$(call recorded,$(call tested,tsan) && $(call tested,asan))

nightly-wheels: native
	$(call recorded,$(MAKE) --no-print-directory build-wheels accept-wheel)

# Root can limit the memory of a process, and tests that do must not be skipped there.
$(addprefix nightly-,$(WITH_PYTEST)): export WHERRY_REQUIRE_MEMORY_LIMIT ?= $(if $(filter 0,$(shell id -u)),1)
$(addprefix nightly-,$(WITH_PYTEST)): nightly-%: native
	$(BIN)/pip install --quiet --no-compile ziglang==0.17.1 lief==1.0.0 # as in wheels/requirements.txt
	$(call recorded,$(BIN)/python -m pytest -m nightly -n $(JOBS) --dist loadgroup --no-loadscope-reorder $(NIGHTLY_$*))

# What a person gets who installs the package: no source tree, a cache of its own.
installed:
	$(MAKE) --no-print-directory $(VENV)/.installed
	cd / && WHERRY_CACHE="$(abspath build/installed-cache)" "$(abspath $(BIN))/wherry" run demo --seed 1 "Hello!" | grep .

# manylinux_2_28 for x86_64 and 64-bit Arm, macOS 14 on Apple silicon, and Windows x64, with the core for browsers and the page that `native` built.
WHEEL_TOOLS := build/wheels/tools
wheels: native
	$(MAKE) --no-print-directory build-wheels

# WHEEL=linux-x86_64: that one alone.
build-wheels: $(WHEEL_TOOLS)/.installed
	$(WHEEL_TOOLS)/bin/python -m wheels.build --browser build/dev --out dist $(WHEEL:%=--machine %)

# As root: installs the wheel in a folder that has Debian's Python alone, and runs it there.
accept-wheel: $(WHEEL_TOOLS)/.installed
	$(WHEEL_TOOLS)/bin/python -m wheels.bare_root dist/wherry-*_x86_64.whl build/wheels/bare

# The same for 64-bit Arm, under QEMU, which runs a tenth as fast or less: all steps but `start`, whose
# budget of time means nothing there, and `reload`, whose 240 loads would take hours.
accept-wheel-aarch64: $(WHEEL_TOOLS)/.installed
	$(WHEEL_TOOLS)/bin/python -m wheels.bare_root dist/wherry-*_aarch64.whl build/wheels/bare-aarch64 doctor run compile serve package

# The same for Windows, under Wine.
accept-wheel-windows: $(WHEEL_TOOLS)/.installed
	$(WHEEL_TOOLS)/bin/python -m wheels.windows.wine dist/wherry-*-win_amd64.whl build/wheels/wine

# What that wheel packaged for browsers runs in Node and in Chromium, with this machine's tokens.
accept-site: $(VENV)/.checked $(WEB)
	$(BIN)/python -m pytest -m nightly tests/web/test_site_of_wheel.py

$(WHEEL_TOOLS)/.installed: wheels/requirements.txt
	$(PYTHON) -m venv $(WHEEL_TOOLS)
	$(WHEEL_TOOLS)/bin/pip install --quiet --requirement wheels/requirements.txt
	$(WHEEL_TOOLS)/bin/pip install --quiet --no-deps apache-tvm==0.27.0.post1 # its headers
	touch $@

# Of the folder that `wherry package` wrote; RELEASE: further options (python -m mobile.release --help).
release: $(VENV)/.checked tools
	test -n "$(PACKAGE)" || { echo "Type: make release PACKAGE=DIR, which wherry package wrote" >&2; exit 2; }
	PYTHONPATH=src $(BIN)/python -m mobile.release "$(PACKAGE)" $(RELEASE)

# The generated pages (tests compare them), then the site, in build/docs; strictly, and without a network.
docs: charts
	PYTHONPATH=src $(BIN)/python -m wherry.cli.reference > docs/cli.md
	PYTHONPATH=src $(BIN)/python -m tests.models.checked
	PYTHONPATH=src $(BIN)/python -m wherry.compiler.supported > docs/models.md
	PYTHONPATH=src $(BIN)/python -m wherry.compiler.recommended > docs/which-model.md
	PYTHONPATH=src $(BIN)/python -m docs.reference.http_api > docs/http-api.md
	PYTHONPATH=src $(BIN)/python -m docs.reference.mobile_api > docs/mobile-api.md
	PYTHONPATH=src $(BIN)/python -m docs.reference.python_api > docs/python-api.md
	PYTHONPATH=src $(BIN)/python -m docs.reference.terminal_picture
ifneq ($(and $(shell command -v em++),$(shell command -v chromium)),)
	$(MAKE) --no-print-directory pictures
else
	@echo "The pictures of the page stay as they are: they need emscripten and Chromium" >&2
endif
	$(BIN)/pip install --quiet --no-compile mkdocs-material==9.8.1 # as in pyproject.toml's docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Of the page for browsers, in README.
pictures: browser
	$(BIN)/wherry package demo --target wasm -o build/pictures
	PYTHONPATH=src $(BIN)/python -m docs.reference.page_pictures build/pictures

# The README's chart and the table of all benchmark rows.
charts: $(VENV)/.checked
	PYTHONPATH=src $(BIN)/python -m benchmarks.charts
	PYTHONPATH=src $(BIN)/python -m benchmarks.table > docs/performance.md

# The core and the page for browsers, by the build that `native` continues; into .venv, too, where every
# later installation leaves them.
BROWSER := build/dev/web/wherry-core.o build/dev/page/index.html
browser: browser-built
	$(MAKE) --no-print-directory $(VENV)/.installed

browser-built: browser-tools $(VENV)/.installed $(WEB)
	PYTHONPATH=src $(BIN)/python -m wherry.tools xgrammar
	$(call configure,dev) --log-level=WARNING
	$(cmake) --build --preset dev --target wherry_page

.PHONY: browser-tools
browser-tools:
	@command -v em++ >/dev/null && test -n "$(NPM)" || { \
	  echo "Type: apt-get install --no-install-recommends emscripten binaryen lld nodejs npm" >&2; exit 2; }

# What `npm install dist/wherry-*.tgz` takes.
npm: browser-built
	mkdir -p dist
	cd web && npm pack --silent --pack-destination ../dist

# The wheel for Python in browsers, in build/pyodide; and a notebook page that has it and the model of its
# first cell, which `wherry web build/notebook` shows.
pyodide: browser
	cd web && node scripts/bundle_python.js
	rm -rf build/pyodide
	$(BIN)/pip install --quiet --no-compile "hatchling>=1.27,<2" # as in pyproject.toml's test
	cd web/python && "$(abspath $(BIN))/python" -m hatchling build -t wheel -d "$(abspath build/pyodide)"

notebook: pyodide
	cd web && node scripts/bundle_notebook.js ../build/pyodide/*.whl ../build/notebook
	$(BIN)/wherry compile demo --target wasm -o build/notebook/models/demo

# What a machine with an NVIDIA GPU and no network needs to check and measure us, and its use there.
gpu-bundle: $(VENV)/.tested native
	PYTHONPATH=src:. $(BIN)/python -m benchmarks.gpu.bundle build/gpu.tar.xz

gpu-check:
	benchmarks/gpu_check.sh build/gpu.tar.xz build/gpu-results

# What is made of the data of app/data (a test compares it).
generated: $(VENV)/.checked
	PYTHONPATH=src $(BIN)/python -m tests.app.generated

format: $(VENV)/.checked $(WEB)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)
	$(if $(NPM),npm run --silent --prefix web format)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(WEB): web/package.json web/package-lock.json
	npm ci --silent --no-fund --no-audit --prefix web
	touch $@

INSTALLED := $(VENV)/bin/python $(SOURCES) $(shell find $(PACKAGES) -name '*.py' -o -name '*.json' -o -name '*.safetensors' 2>/dev/null)

# Where no compiler is installed, Zig's compiles the core (make demo; the tests need a compiler).
COMPILER := $(shell command -v "$${CXX:-c++}" || command -v g++ || command -v clang++)
ifeq ($(COMPILER),)
ZIG := ;CMAKE_TOOLCHAIN_FILE=$(abspath cmake/zig.cmake);WHERRY_ZIG=$(abspath $(BIN)/zig)
$(VENV)/.installed: $(BIN)/zig
endif

# The core for browsers is built once, by `native` or `browser`, and taken from there.
BROWSER_BUILT = $(if $(word 2,$(wildcard $(BROWSER))),$(abspath build/dev))
$(VENV)/.installed: export SKBUILD_CMAKE_DEFINE = WHERRY_WEB=OFF;WHERRY_WEB_BUILT=$(BROWSER_BUILT);CMAKE_UNITY_BUILD=ON$(ZIG)

$(BIN)/ninja: | $(VENV)/bin/python
	$(BIN)/pip install --quiet --no-compile "cmake>=3.25,<5" "ninja>=1.11,<2" # as in pyproject.toml's apps

$(BIN)/zig: $(VENV)/bin/python
	$(BIN)/pip install --quiet --no-compile ziglang==0.17.1 # as in wheels/requirements.txt
	ln -sf "$$($(BIN)/python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')" $@

# Built with the packages of .venv, whose paths stay: what a source does not concern is not compiled again.
$(VENV)/.installed: $(INSTALLED) $(wildcard $(BROWSER)) | $(BIN)/ninja
	@echo "Installing packages of Python into $(VENV) ..."
	$(BIN)/python -m tests.requirements > $@.txt
	$(BIN)/pip install --quiet --requirement $@.txt
	@echo "Compiling the core, which takes minutes the first time ..."
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pip install --no-build-isolation --no-deps .
	touch $@

# What tests and lint import, without Wherry: `.checked`; with NVIDIA's compiler `.tested`. Of these packages
# most modules are never imported, so none is compiled beforehand.
$(VENV)/.checked: EXTRAS := test
$(VENV)/.tested: EXTRAS := cuda
$(VENV)/.tested: $(VENV)/.checked
$(VENV)/.checked $(VENV)/.tested: pyproject.toml tests/requirements.py | $(VENV)/bin/python
	$(BIN)/python -m tests.requirements $(EXTRAS) > $@.txt
	$(BIN)/pip install --quiet --no-compile --requirement $@.txt
	touch $@

clean:
	rm -rf build $(VENV)
