//! A fake of the Messages API and a driver for the real Claude Code.
