//! Tools and system, cached for all sessions (MODEL.md §3.7).

/// A shared prefix. It can be read from the first token of the call that wrote it, until a lifetime after its last use; whose
/// sessions keep it for longer keep it for all.
#[derive(Debug, Default)]
pub(super) struct SharedPrefix {
    /// Until when it can be read, where it can be.
    until_ns: Option<u64>,
    /// Calls that write it.
    written: Vec<Written>,
}

/// A call that writes the prefix.
#[derive(Debug)]
#[allow(clippy::struct_field_names)] // units stand in the names
struct Written {
    begun_ns: u64,
    /// From when on what it writes can be read, and until when.
    readable_ns: u64,
    until_ns: u64,
}

impl SharedPrefix {
    /// Whether it can be read at `now_ns`. Calls of one moment can't read each other's write.
    pub fn is_warm(&mut self, now_ns: u64) -> bool {
        if !self.written.is_empty() {
            let until_ns = &mut self.until_ns;
            self.written.retain(|write| {
                let readable = write.readable_ns < now_ns || (write.readable_ns == now_ns && write.begun_ns < now_ns);
                if readable {
                    *until_ns = (*until_ns).max(Some(write.until_ns));
                }
                !readable
            });
        }
        self.until_ns.is_some_and(|until_ns| now_ns <= until_ns)
    }

    /// A call that begins at `now_ns` reads it, or writes it and has its first token at `first_token_ns`; it keeps it for a
    /// lifetime.
    pub fn touch(&mut self, now_ns: u64, found: bool, first_token_ns: u64, lifetime_ns: u64) {
        let until_ns = now_ns.saturating_add(lifetime_ns);
        if found {
            self.until_ns = self.until_ns.max(Some(until_ns));
        } else {
            self.written.push(Written { begun_ns: now_ns, readable_ns: first_token_ns, until_ns });
        }
    }
}
