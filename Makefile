# The commands of this repository. `make help` lists them.

SHELL := bash
.DEFAULT_GOAL := help

ARCH ?= amd64
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := decode dhcp dns forward http labels ndn ntp pcap pcapng proxy quic ring ssh state syn tls

.PHONY: help run build packages release-check check test test-all lint bench instructions fuzz site clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build quickly (profile quick, no optional features) and monitor the bundled capture, as text and as a page
	@scripts/setup.sh
	cargo run --profile quick -p ringtap --no-default-features --locked -- monitor -r examples/office.pcap
	@mkdir -p target
	@cargo run --quiet --profile quick -p ringtap --no-default-features --locked -- monitor -r examples/office.pcap --quiet \
		--report html > target/report.html
	@echo "The same as a page with charts: $(CURDIR)/target/report.html"

build: ## build the release binaries, target/release/ringtap and target/release/ringtap-ndn
	@scripts/setup.sh
	cargo build --release --locked

packages: ## build static programs, Debian packages and a Python wheel for ARCH (amd64 or arm64) in target/packages
	@scripts/setup.sh
	@scripts/setup-packages.sh $(ARCH)
	@scripts/make-packages.sh $(ARCH)

release-check: packages ## check the packages of this machine: install, run, upgrade and purge them, build them again
	@scripts/release-check.sh

check: ## run quick tests: unit tests of the crates, and the equality matrix
	@scripts/setup.sh
	@scripts/check.sh

test-all: ## run every test, the full equality matrix, a broker of Kafka, and ten minutes of fuzzing per target
	@scripts/setup.sh
	@RINGTAP_FULL=1 scripts/setup-test.sh
	@RINGTAP_FULL=1 scripts/test.sh
	@$(MAKE) fuzz FUZZ_SECONDS=600

test: ## run every test; the last line is the total
	@scripts/setup.sh
	@scripts/setup-test.sh
	@scripts/test.sh

lint: ## check formatting, clippy and documentation; warnings are errors
	@scripts/setup.sh
	@scripts/lint.sh

bench: ## run the micro-benchmarks of the crates
	@scripts/setup.sh
	cargo bench --workspace --locked --bench '*'

instructions: ## count the instructions of hot paths with callgrind, and compare them with the kept counts
	@scripts/setup.sh
	@scripts/instructions.sh

fuzz: ## run each fuzz target for FUZZ_SECONDS (60)
	@for target in $(FUZZ_TARGETS); do scripts/fuzz.sh $$target $(FUZZ_SECONDS) || exit 1; done

# With RINGTAP=PATH the reference is of that program, and none is built.
site: ## build the documentation site, target/site, and check its links
	@scripts/setup-site.sh
ifndef RINGTAP
	@scripts/setup.sh
	cargo build --profile quick -p ringtap --locked
endif
	@scripts/site.py $(or $(RINGTAP),target/quick/ringtap)

clean: ## remove all build outputs
	rm -rf target compare/target fuzz/target fuzz/artifacts examples/analyses/target
