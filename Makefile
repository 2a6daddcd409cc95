# What a developer types. `make test` sets up what the tests need and runs all
# of them; .ci/run calls it on a clean checkout.

.PHONY: build dist test quick setup lint unit readers faults fuzz bench accuracy planted

build:
	cargo build --release

# A static binary, target/dist/diskperf: it needs neither Rust nor a C library where it
# runs. Needs musl-gcc (`make setup` installs it) and Rust's musl target.
dist:
	./tools/dist

test: setup lint unit

# The tests make real file systems, partitions and loop devices. As root,
# what is missing is installed; otherwise those tests say that they are skipped.
setup:
	./tools/setup

lint:
	# A macro declares the programs, where rustfmt does not follow.
	cargo fmt --all --check -- crates/battery/src/programs/*.rs
	cargo clippy --workspace --all-targets --quiet -- --deny warnings
	./tools/check-dependencies
	./tools/check-security
	cd crates/analysis/assets && sha256sum --check --quiet SHA256SUMS
	./tools/plant-bugs --check
	./tools/check-words --self-test
	./tools/check-words

unit:
	./tools/run-tests

# For someone at the keyboard: unit tests and the fastest of the others, a minute or so once
# they are compiled.
quick:
	./tools/run-tests --quick

# What reads fio's results on ours: fio-plot, which pip installs, fio's scripts and jq.
readers:
	cargo build
	./tools/test-fio-readers

# Of what `make test` takes a sample: every operation beneath diskperf fails once,
# and runs, searches and `clean` are killed at 300 instants each.
faults:
	DISKPERF_VERIFY_SEED=clock cargo test --package diskperf-battery --test verify_combinations -- --nocapture
	DISKPERF_ENDS=all DISKPERF_COUNTS=all cargo test --package diskperf-laboratory --test job_files --no-fail-fast -- --nocapture
	DISKPERF_FAULTS=all DISKPERF_KILLS=300 cargo test --package diskperf --test faults --test kill --no-fail-fast -- --nocapture

# Not part of the tests: nothing here asserts a time.
bench:
	cargo bench --package diskperf-system --bench overhead
	cargo bench --package diskperf-sim --bench engine
	cargo bench --package diskperf-machine
	cargo bench --package diskperf-ftl
	./bench/start
	./bench/ring
	./bench/ring --generator program
	./bench/open-loop
	./bench/replay
	./bench/against-fio
	./bench/explain
	./bench/record
	./bench/serve
	./bench/cuts
	./bench/events
	./bench/verdicts
	./bench/report
	./bench/tune
	./bench/python
	./bench/sweep
	./bench/fit
	./bench/unseen-drives draw target/unseen-drives
	./bench/unseen-drives score target/unseen-drives
	./bench/unseen-drives alone target/unseen-drives
	./bench/unseen-drives controls target/unseen-controls
	./bench/unseen-drives score target/unseen-controls

# The page that a test compares with what the models give.
accuracy: build
	./target/release/diskperf reproduce --format markdown > ACCURACY.tmp
	mv ACCURACY.tmp ACCURACY.md

# Ten minutes of libFuzzer for each parser. Needs a nightly toolchain and cargo-fuzz.
fuzz:
	./tools/fuzz

# Plants physical bugs, one after the other, and shows which test notices each.
planted:
	./tools/plant-bugs
