# `make demo` shows it, `make test` checks everything; both set up what is missing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

CARGO ?= cargo
# Language servers that tests and demo share; nothing is put outside the checkout.
export HOSTLER_TOOLS := $(CURDIR)/target/tools
PASSES ?= 10
# Those that are proved by tests.
SERVERS := pyright basedpyright ruff typescript-language-server typescript-native vtsls clangd \
  bash-language-server

# The build that sets up is the one that is used then.
PROFILE := dev
HOSTLER = target/$(if $(filter release,$(PROFILE)),release,debug)/hostler

.PHONY: help demo test test-repeat truth bench lint fmt doc deny setup system

help:
	@sed -n 's/^## //p' Makefile

## make demo         set up, build, and watch hostler work
demo: PROFILE := release
demo: setup
	@$(HOSTLER) demo $(PART)

## make test         set up, then format, lints, tests and documentation
test: setup lint
	scripts/nothing-left $(CARGO) test --workspace --all-features --quiet
	$(MAKE) --no-print-directory doc deny

## make test-repeat  the tests ten times (PASSES=n), up to the first failure
test-repeat:
	@$(CARGO) test --workspace --all-features --quiet --no-run
	@for pass in $$(seq $(PASSES)); do \
	  begin=$$SECONDS; \
	  scripts/nothing-left $(CARGO) test --workspace --all-features --quiet; \
	  echo "pass $$pass of $(PASSES): $$((SECONDS - begin)) s"; \
	done

## make truth        200 edits with known answers for each language server (EDITS=n)
truth: setup
	@$(CARGO) build --quiet --examples
	@EDITS=$${EDITS:-200} $(CARGO) test --package hostler --test it --quiet truth:: -- --nocapture --test-threads=1

## make bench        the figures: floor, ours, goal
bench: PROFILE := release
bench: setup
	@$(CARGO) build --release --quiet --examples
	@$(CARGO) bench --package hostler --quiet

## make lint         formatting and lints
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --quiet -- -D warnings

## make fmt          write the formatting
fmt:
	$(CARGO) fmt --all

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet

deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	  $(CARGO) deny check bans licenses sources; \
	else \
	  echo "skipped: cargo-deny is not installed (cargo install cargo-deny)"; \
	fi

## make setup        what tests and demo need: a C linker, Node, Python, language servers
setup: system
	$(CARGO) build --profile $(PROFILE) --quiet
	@$(HOSTLER) tools install $(SERVERS)

system:
	@scripts/system
