//! Content-Length framing, shared by language servers and debug adapters.
