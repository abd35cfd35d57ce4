# The ways into this repository. Each one installs what it needs first; nothing else is required
# than cargo. ARGS goes to the program: make serve ARGS="--no-chromium-sandbox".

ARGS ?=
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: demo test torture serve bench bench-log bench-engines bench-conformance bench-economy lint setup

# The main job on real Chromium, told in plain words. Built as the tests are, so that nothing is
# compiled twice. What it leaves is below target/demo.
demo: setup
	cargo build --workspace --bin pageledger --example demo
	$(TARGET)/debug/examples/demo

test: setup
	cargo test --workspace

# What the log promises under faults, in its long form: kills, power cuts, flipped bits, load. Ends by
# itself after about a quarter of an hour on two cores with a table of results. Power cuts need root.
torture: setup
	./.ci/torture

serve: setup
	cargo run --release --bin pageledger -- serve --http 127.0.0.1:8931 $(ARGS)

bench: setup
	cargo bench --workspace

# Only what concerns the log, without a browser. ARGS chooses parts: make bench-log ARGS="pages restart".
bench-log: setup
	cargo bench -p pageledger-storage --bench log -- $(ARGS)

# The log beside sled, SQLite, redb and fjall in one program; a package of its own.
bench-engines: setup
	cargo run --release --manifest-path benches/engines/Cargo.toml --target-dir $(TARGET)/engines

# The pages of the conformance test against Playwright, to see that what they expect is right. Needs node
# and npm. ARGS chooses cases by parts of their names: make bench-conformance ARGS="fields drag".
bench-conformance: setup
	./benches/conformance/run $(ARGS)

# What 100 console lines and 100 requests cost a model to read, beside two peers. Needs node and npm.
bench-economy: setup
	cargo build --workspace --bin pageledger
	./benches/economy/run $(TARGET)/debug/pageledger

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

setup:
	./.ci/setup
