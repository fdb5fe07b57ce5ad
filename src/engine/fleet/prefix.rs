//! Tools and system, cached for all sessions (MODEL.md §3.7).

/// The shared prefix. It can be read from the first token of the call that wrote it, until a lifetime after its last use.
#[derive(Debug)]
pub(super) struct SharedPrefix {
    lifetime_ns: u64,
    /// When it was last used, where it can be read.
    used_ns: Option<u64>,
    /// Calls that write it: when they began, and from when on it can be read.
    written: Vec<(u64, u64)>,
}

impl SharedPrefix {
    pub fn new(lifetime_ns: u64) -> Self {
        Self { lifetime_ns, used_ns: None, written: Vec::new() }
    }

    /// Whether it can be read at `now_ns`. Calls of one moment can't read each other's write.
    pub fn is_warm(&mut self, now_ns: u64) -> bool {
        if !self.written.is_empty() {
            let used_ns = &mut self.used_ns;
            self.written.retain(|(begun_ns, readable_ns)| {
                let readable = *readable_ns < now_ns || (*readable_ns == now_ns && *begun_ns < now_ns);
                if readable {
                    *used_ns = Some(used_ns.map_or(*begun_ns, |used| used.max(*begun_ns)));
                }
                !readable
            });
        }
        self.used_ns.is_some_and(|used_ns| now_ns - used_ns <= self.lifetime_ns)
    }

    /// A call that begins at `now_ns` reads it, or writes it and has its first token at `first_token_ns`.
    pub fn touch(&mut self, now_ns: u64, found: bool, first_token_ns: u64) {
        if found {
            self.used_ns = Some(self.used_ns.map_or(now_ns, |used| used.max(now_ns)));
        } else {
            self.written.push((now_ns, first_token_ns));
        }
    }
}
