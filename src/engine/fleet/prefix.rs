//! Tools and system, cached for all sessions (MODEL.md §3.7).

/// A shared prefix. It can be read from the first token of the call that wrote it, until the lifetime under which it was written
/// after its last use.
#[derive(Debug, Default)]
pub(super) struct SharedPrefix {
    /// One for each lifetime under which it was written: sessions of an agent can take over different ones.
    entries: Vec<Entry>,
    /// Calls that write it.
    written: Vec<Written>,
}

#[derive(Debug)]
#[allow(clippy::struct_field_names)] // units stand in the names
struct Entry {
    lifetime_ns: u64,
    used_ns: u64,
}

/// A call that writes the prefix.
#[derive(Debug)]
#[allow(clippy::struct_field_names)] // as above
struct Written {
    begun_ns: u64,
    /// From when on what it writes can be read, and for how long after a use.
    readable_ns: u64,
    lifetime_ns: u64,
}

impl Entry {
    fn lives(&self, now_ns: u64) -> bool {
        now_ns - self.used_ns <= self.lifetime_ns
    }
}

impl SharedPrefix {
    /// Whether it can be read at `now_ns`. Calls of one moment can't read each other's write.
    pub fn is_warm(&mut self, now_ns: u64) -> bool {
        if !self.written.is_empty() {
            let entries = &mut self.entries;
            self.written.retain(|write| {
                let readable = write.readable_ns < now_ns || (write.readable_ns == now_ns && write.begun_ns < now_ns);
                if readable {
                    match entries.iter_mut().find(|entry| entry.lifetime_ns == write.lifetime_ns) {
                        Some(entry) => entry.used_ns = entry.used_ns.max(write.begun_ns),
                        None => entries.push(Entry { lifetime_ns: write.lifetime_ns, used_ns: write.begun_ns }),
                    }
                }
                !readable
            });
        }
        self.entries.iter().any(|entry| entry.lives(now_ns))
    }

    /// A call that begins at `now_ns` reads what lives of it.
    pub fn read(&mut self, now_ns: u64) {
        for entry in self.entries.iter_mut().filter(|entry| entry.lives(now_ns)) {
            entry.used_ns = now_ns;
        }
    }

    /// A call that begins at `now_ns` writes it under a lifetime, and has its first token at `readable_ns`.
    pub fn write(&mut self, now_ns: u64, readable_ns: u64, lifetime_ns: u64) {
        self.written.push(Written { begun_ns: now_ns, readable_ns, lifetime_ns });
    }
}
