# The doors of the repository. Each makes what it needs in .venv; nothing outside the folder is changed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PORT ?= 8888

.PHONY: lab test demo notebooks docs bench clean

lab: .venv/lab ## JupyterLab on the tour
	$(BIN)/jupyter lab --port $(PORT) $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/00_tour.ipynb

test: tools .venv/test ## everything that CI checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadfile

demo: .venv/lab ## the file task with no browser, the run as text
	$(BIN)/nb-agent demo

notebooks: .venv/lab ## run all notebooks again and keep their outputs
	$(BIN)/python -m nb_agent.lessons.execute notebooks

docs: .venv/lab ## the reference tables, from the code
	$(BIN)/python docs/tables.py

bench: .venv/test ## the ratios that benchmarks/README.md explains
	$(BIN)/python benchmarks/start.py --check
	$(BIN)/python benchmarks/loop.py --check
	$(BIN)/python benchmarks/stream.py --check
	$(BIN)/python benchmarks/tools.py --check
	$(BIN)/python benchmarks/counting.py --check

clean:
	rm -rf .venv demo screenshots .pytest_cache .mypy_cache .ruff_cache

.PHONY: tools
tools:
	@command -v $${CHROMIUM:-chromium} >/dev/null || { echo "The browser tests need Chromium: apt-get install chromium fonts-noto-cjk fonts-noto-color-emoji (or set CHROMIUM)"; exit 1; }
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "The JavaScript tests and one judge need Node 20 or newer with npm: apt-get install nodejs npm"; exit 1; }

.venv/bin/python:
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name it with PYTHON=/path/to/python"; exit 1; }
	"$(PYTHON)" -m venv .venv

EXTENSION := $(wildcard nb_agent/views/static/* nb_agent/views/labextension/*.json nb_agent/views/labextension/static/*)

.venv/lab: .venv/bin/python pyproject.toml $(EXTENSION)
	$(BIN)/python -m pip install --quiet --editable '.[lab]'
	bash binder/postBuild $(BIN)/python
	touch $@

.venv/test: .venv/lab
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@
