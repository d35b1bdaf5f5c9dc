# The two commands of the README, and the parts of the second.
#   make demo    install into .venv and let the demo model answer
#   make check   lint, types and the Python tests that need neither the core nor a device: minutes
#   make test    install into .venv and check everything that CI checks
#   make threads the engine's threads under ThreadSanitizer, which CI checks too
#   make wheels  wheels for Linux and macOS that need no compiler, in dist/; accept-wheel and accept-site
#                check one, which CI does too; accept-wheel-aarch64 checks another under QEMU
#   make release PACKAGE=DIR what apps download of a package for them: a Maven repository, a Swift package
#   make nightly the tests that take minutes: AddressSanitizer, damaged files and requests by the thousand,
#                clients of other servers, Ray

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CXX_FILES := $(shell find engine app tests/targets/metal tests/backends/metal tests/packager web/core mobile -name '*.cc' -o -name '*.h')
SOURCES := pyproject.toml CMakeLists.txt $(CXX_FILES) engine/backends/plugins.cmake
PACKAGES := app/data compiler passes quant relax_models runtime_py targets src/wherry
export CMAKE_BUILD_PARALLEL_LEVEL ?= 2
# Tests start Python some hundred times; without bytecode each would compile TVM's sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test threads nightly lint lint-python lint-cxx lint-web native python installed wheels build-wheels accept-wheel accept-wheel-aarch64 accept-wheel-windows accept-site release docs charts page pyodide notebook gpu-bundle gpu-check format generated clean

demo: $(VENV)/.installed
	$(BIN)/wherry run demo "Tell me a story about a fox."

test: lint native python installed

# Nothing is built for these: a changed source does not install .venv again.
CHECKED := tests/quant tests/passes tests/runtime/tools tests/runtime/grammar tests/runtime/test_requests.py \
  tests/models/test_config.py tests/models/test_gemma4_config.py tests/models/test_rope.py \
  tests/models/test_weight_order.py tests/models/test_weight_plan.py tests/test_imports.py tests/test_arguments.py tests/test_includes.py \
  tests/test_pages.py tests/test_reference_pages.py

check:
	test -e $(VENV)/.tested || $(MAKE) --no-print-directory $(VENV)/.tested
	$(MAKE) --no-print-directory lint-python
	$(BIN)/python -m pytest -n 2 -q $(CHECKED)

WEB := web/node_modules/.package-lock.json

lint: $(VENV)/.tested $(WEB)
	$(MAKE) --no-print-directory -j2 lint-python lint-cxx lint-web

lint-python:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.lint_words

lint-cxx:
	@$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)

lint-web:
	npm run --silent --prefix web lint

# The core and its C++ tests; `nightly` runs all under AddressSanitizer, those with threads under
# ThreadSanitizer, and the ten thousand random requests under both. A room is compiled as one file.
tested = PATH="$(abspath $(BIN)):$$PATH" cmake --preset $(1) -DCMAKE_UNITY_BUILD=ON \
    -DPython_EXECUTABLE="$(abspath $(BIN))/python" && \
  PATH="$(abspath $(BIN)):$$PATH" cmake --build --preset $(1) && \
  PATH="$(abspath $(BIN)):$$PATH" ctest --preset $(1) $(2)

# With the page, which CMake leaves out where its packages are missing.
native: $(VENV)/.tested $(WEB)
	$(call tested,dev)

threads: $(VENV)/.tested
	$(call tested,tsan,-E random)

# On both cores; a file stays on one of them, so that its compiled models are made once. Those that take
# longest begin (tests/conftest.py), so that neither core waits at the end.
python: native
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=20

# Root can limit the memory of a process, and tests that do must not be skipped there.
nightly: export WHERRY_REQUIRE_MEMORY_LIMIT ?= $(if $(filter 0,$(shell id -u)),1)
nightly: native
	$(call tested,tsan)
	$(call tested,asan)
	$(BIN)/pip install --quiet --no-compile ziglang==0.17.1 lief==1.0.0 # as in wheels/requirements.txt
	$(MAKE) --no-print-directory build-wheels
	$(MAKE) --no-print-directory accept-wheel
	$(BIN)/python -m pytest -m nightly -n 2 --dist loadgroup --no-loadscope-reorder

# What a person gets who installs the package: no source tree, a cache of its own.
installed: $(VENV)/.tested
	cd / && WHERRY_CACHE="$(abspath build/installed-cache)" "$(abspath $(BIN))/wherry" run demo --seed 1 "Hello!" | grep .

# manylinux_2_28 for x86_64 and 64-bit Arm, macOS 14 on Apple silicon, and Windows x64, with the core for browsers and the page that `native` built.
WHEEL_TOOLS := build/wheels/tools
wheels: native
	$(MAKE) --no-print-directory build-wheels

build-wheels: $(WHEEL_TOOLS)/.installed
	$(WHEEL_TOOLS)/bin/python -m wheels.build --browser build/dev --out dist

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
accept-site: $(VENV)/.tested $(WEB)
	$(BIN)/python -m pytest -m nightly tests/web/test_site_of_wheel.py

$(WHEEL_TOOLS)/.installed: wheels/requirements.txt
	$(PYTHON) -m venv $(WHEEL_TOOLS)
	$(WHEEL_TOOLS)/bin/pip install --quiet --requirement wheels/requirements.txt
	$(WHEEL_TOOLS)/bin/pip install --quiet --no-deps apache-tvm==0.27.0.post1 # its headers
	touch $@

# Of the folder that `wherry package` wrote; RELEASE: further options (python -m mobile.release --help).
release: $(VENV)/.tested
	test -n "$(PACKAGE)" || { echo "Type: make release PACKAGE=DIR, which wherry package wrote" >&2; exit 2; }
	$(BIN)/python -m mobile.release "$(PACKAGE)" $(RELEASE)

# The generated pages (tests compare them), then the site, in site/; strictly, and without a network.
docs: charts
	PYTHONPATH=src $(BIN)/python -m wherry.cli.reference > docs/cli.md
	PYTHONPATH=src $(BIN)/python -m tests.models.checked
	PYTHONPATH=src $(BIN)/python -m wherry.compiler.supported > docs/models.md
	PYTHONPATH=src $(BIN)/python -m docs.reference.http_api > docs/http-api.md
	PYTHONPATH=src $(BIN)/python -m docs.reference.mobile_api > docs/mobile-api.md
	PYTHONPATH=src $(BIN)/python -m docs.reference.python_api > docs/python-api.md
	$(BIN)/pip install --quiet --no-compile mkdocs-material==9.8.1 # as in pyproject.toml's docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# The README's chart and the table of all benchmark rows.
charts: $(VENV)/.tested
	PYTHONPATH=src $(BIN)/python -m benchmarks.charts
	PYTHONPATH=src $(BIN)/python -m benchmarks.table > docs/performance.md

# The page that `wherry web` and `wherry package` bring along, for a checkout that was not built.
page: $(WEB)
	cd web && node scripts/bundle_page.js ../build/page

# The wheel for Python in browsers, in build/pyodide; and a notebook page that has it, which
# `wherry web build/notebook` shows with the compiled folders in its models/.
pyodide: $(VENV)/.tested $(WEB)
	cd web && node scripts/bundle_python.js
	rm -rf build/pyodide
	cd web/python && "$(abspath $(BIN))/python" -m hatchling build -t wheel -d "$(abspath build/pyodide)"

notebook: pyodide
	cd web && node scripts/bundle_notebook.js ../build/pyodide/*.whl ../build/notebook

# What a machine with an NVIDIA GPU and no network needs to check and measure us, and its use there.
gpu-bundle: $(VENV)/.tested native
	PYTHONPATH=src:. $(BIN)/python -m benchmarks.gpu.bundle build/gpu.tar.xz

gpu-check:
	benchmarks/gpu_check.sh build/gpu.tar.xz build/gpu-results

# What is made of the data of app/data (a test compares it).
generated: $(VENV)/.tested
	PYTHONPATH=src $(BIN)/python -m tests.app.generated

format: $(VENV)/.tested $(WEB)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)
	npm run --silent --prefix web format

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

# The core for browsers is built once, by `native`, and not for this wheel.
$(VENV)/.installed $(VENV)/.tested: export SKBUILD_CMAKE_DEFINE := WHERRY_WEB=OFF;CMAKE_UNITY_BUILD=ON$(ZIG)

$(BIN)/zig: $(VENV)/bin/python
	$(BIN)/pip install --quiet --no-compile ziglang==0.17.1 # as in wheels/requirements.txt
	ln -sf "$$($(BIN)/python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')" $@

$(VENV)/.installed: $(INSTALLED)
	$(BIN)/pip install --quiet .
	touch $@

# Of the packages that tests need most modules are never imported, so none is compiled beforehand.
$(VENV)/.tested: $(INSTALLED)
	$(BIN)/pip install --quiet --no-compile ".[test,cuda]"
	touch $(VENV)/.installed $@

clean:
	rm -rf build $(VENV)
