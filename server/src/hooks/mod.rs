//! What is written into the home so that Claude Code tells us what it does: the hook settings per
//! version, the hook script, and the shell integration. It must never write outside the home.
