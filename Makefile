# Every target is one script or one command that also works by itself; `make` only gives them short names.
# ARGS goes to `purplemux serve`: make run ARGS='--port 9000'.

.DEFAULT_GOAL := help
.PHONY: help run test versions fmt bench fidelity answers properties simulate deny mutants

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

run: ## set up what is missing, build and start purplemux (ARGS='--port 9000')
	@scripts/run $(ARGS)

test: ## set up what is missing and run everything: checks, unit, server, browser, real Claude Code
	@scripts/test

versions: ## a short real session with versions of Claude Code from across the years (from npm, a gigabyte)
	@scripts/versions $(VERSIONS)

fmt: ## format the Rust code and the page
	@scripts/fmt

bench: ## measure what docs/performance.md promises (minutes, on a quiet machine)
	@scripts/bench

fidelity: ## random scripts through the real Claude Code, every badge judged (RUNS=200 SEED=1 SESSIONS=4)
	@scripts/fidelity --runs $(or $(RUNS),200) --seed $(or $(SEED),1) --sessions $(or $(SESSIONS),4)

answers: ## answers at random moments to the real Claude Code, half late or doubled (COUNT=200 SEED=1)
	@scripts/answers --count $(or $(COUNT),200) --seed $(or $(SEED),1)

properties: ## many random cases of the properties of the core (CASES=30000; SEED=… plays a run again)
	@PROPTEST_CASES=$(or $(CASES),30000) $(if $(SEED),PROPTEST_RNG_SEED=$(SEED)) cargo test --locked --release -p purplemux-core --test properties

simulate: ## a model of Claude Code against the decisions, by seed (HISTORIES=1000000 or MINUTES=10; SEED=… KEEP_GOING=1)
	@scripts/simulate

mutants: ## one change of the core at a time: does a test notice? (FILE=core/src/asks.rs; the whole core takes hours)
	@scripts/mutants

deny: ## licences, sources and forbidden crates (needs cargo-deny)
	@scripts/deny
