//! Cache policy of a controller: the bits that a driver gives with each command.

/// Cache policy of one class of accesses: bits and read-ahead distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CachePolicy {
    /// Search bit (SEA): the controller looks for sectors in the cache.
    pub searches_cache: bool,
    /// Read cache bit (CRD): the controller keeps read sectors.
    pub caches_reads: bool,
    /// Read-ahead priority bit (RAP): read-ahead comes before waiting writes.
    pub prioritizes_read_ahead: bool,
    /// Write cache bit (CWT): the controller keeps written sectors.
    pub caches_writes: bool,
    /// Sort bit for reads (SRD): the controller takes the nearest waiting read, not the first.
    pub sorts_reads: bool,
    /// Sort bit for writes (SWT): the controller takes the nearest waiting write, not the first.
    pub sorts_writes: bool,
    /// Head bit (XHD): read-ahead crosses the end of a track.
    pub reads_ahead_across_heads: bool,
    /// Cylinder bit (XCY): read-ahead crosses the end of a cylinder.
    pub reads_ahead_across_cylinders: bool,
    /// Read-ahead distance, in sectors.
    pub read_ahead_sectors: u32,
}

/// Maximum read-ahead of a VMEbus controller with policy bits, in sectors (Zachariassen 1987).
pub const READ_AHEAD_SECTORS_MAX: u32 = 244;

impl CachePolicy {
    /// Returns the policy bits with their names, in a fixed order.
    pub fn named_bits(&mut self) -> [(&'static str, &mut bool); 8] {
        [
            ("SEA", &mut self.searches_cache),
            ("CRD", &mut self.caches_reads),
            ("RAP", &mut self.prioritizes_read_ahead),
            ("CWT", &mut self.caches_writes),
            ("SRD", &mut self.sorts_reads),
            ("SWT", &mut self.sorts_writes),
            ("XHD", &mut self.reads_ahead_across_heads),
            ("XCY", &mut self.reads_ahead_across_cylinders),
        ]
    }

    /// Parses policy bits such as `SEA|XHD`, or `0` for none.
    ///
    /// # Errors
    ///
    /// A message about a bit that is unknown, given twice, or without effect because another bit is
    /// missing.
    pub fn parse_policy(text: &str, ahead_sectors: u32) -> Result<Self, String> {
        let mut policy = Self {
            read_ahead_sectors: ahead_sectors,
            ..Self::default()
        };
        if text != "0" {
            for word in text.split('|') {
                let mut bits = policy.named_bits();
                let bit = bits.iter_mut().find(|(name, _)| *name == word);
                let Some((_, bit)) = bit else {
                    return Err(format!(
                        "there is no cache bit `{word}`; there are SEA, CRD, RAP, CWT, SRD, SWT, XHD and XCY, joined by |, and 0 for none"
                    ));
                };
                if std::mem::replace(*bit, true) {
                    return Err(format!("the cache bit {word} is given twice"));
                }
            }
        }
        policy.check_bits()?;
        Ok(policy)
    }

    /// Reports whether read-ahead, once started, runs to its end before a waiting write. Across
    /// cylinders, the controller's processor moves the arm between two operations of the drive, and
    /// sees the write; within a cylinder, read-ahead is one operation. (Inferred: Zachariassen
    /// 1987's copies of files keep what was read ahead, those of raw partitions lose it, and XCY is
    /// the bit by which the two differ.)
    pub fn holds_arm(&self) -> bool {
        self.prioritizes_read_ahead || !self.reads_ahead_across_cylinders
    }

    /// Formats the policy bits, such as `SEA|XHD`, or `0` for none.
    pub fn format_bits(mut self) -> String {
        let bits = self.named_bits();
        let set = bits.into_iter().filter(|(_, bit)| **bit);
        let names: Vec<&str> = set.map(|(name, _)| name).collect();
        match names.is_empty() {
            true => "0".to_owned(),
            false => names.join("|"),
        }
    }

    /// Returns all policies without contradictions, with each of the given read-ahead distances.
    pub fn all_effective(distances: &[u32]) -> Vec<Self> {
        let mut all = Vec::new();
        for mask in 0..256_u32 {
            let mut policy = Self::default();
            for (place, (_, bit)) in policy.named_bits().into_iter().enumerate() {
                *bit = mask & (1 << place) != 0;
            }
            if policy.check_bits().is_ok() {
                all.extend(distances.iter().map(|distance| Self {
                    read_ahead_sectors: *distance,
                    ..policy
                }));
            }
        }
        all
    }

    /// Returns the policy reduced to the settings that can have an effect. `writes` is whether a
    /// write came, and `choices` whether two commands waited for the arm. Two policies with the
    /// same result behave alike. The result may be a policy that cannot be given.
    pub fn without_ineffective_bits(self, writes: bool, choices: bool) -> Self {
        let ahead_sectors = match self.searches_cache {
            true => self.read_ahead_sectors,
            // Without a search nothing is read ahead.
            false => 0,
        };
        let ahead = ahead_sectors > 0;
        Self {
            searches_cache: self.searches_cache,
            caches_reads: self.caches_reads,
            // It is looked at only through `holds_arm`, and that only where a
            // write waits.
            prioritizes_read_ahead: ahead
                && writes
                && self.reads_ahead_across_cylinders
                && self.prioritizes_read_ahead,
            caches_writes: writes && self.caches_writes,
            sorts_reads: choices && self.sorts_reads,
            sorts_writes: choices && writes && self.sorts_writes,
            reads_ahead_across_heads: ahead && self.reads_ahead_across_heads,
            reads_ahead_across_cylinders: match ahead {
                true => self.reads_ahead_across_cylinders,
                false => writes && !self.holds_arm(),
            },
            read_ahead_sectors: ahead_sectors,
        }
    }

    fn check_bits(&self) -> Result<(), String> {
        let needs = [
            (
                self.reads_ahead_across_cylinders && !self.reads_ahead_across_heads,
                "XCY needs XHD: a cylinder ends where its last head's track does",
            ),
            (
                self.caches_writes && !self.searches_cache,
                "CWT needs SEA: without it, the cache is never searched",
            ),
            (
                self.caches_reads && !self.searches_cache,
                "CRD needs SEA: without it, the cache is never searched",
            ),
            (
                self.reads_ahead_across_heads && !self.searches_cache,
                "XHD needs SEA: without a search nothing is read ahead",
            ),
            (
                self.prioritizes_read_ahead && !self.searches_cache,
                "RAP needs SEA: without a search nothing is read ahead",
            ),
        ];
        match needs.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, why)) => Err(why.to_owned()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_by_name() {
        let policy = CachePolicy::parse_policy("SEA|XHD|XCY", 100).unwrap();
        assert!(
            policy.searches_cache
                && policy.reads_ahead_across_heads
                && policy.reads_ahead_across_cylinders
        );
        assert!(!policy.caches_reads && policy.read_ahead_sectors == 100);
        assert_eq!(
            CachePolicy::parse_policy("0", 60).unwrap(),
            CachePolicy {
                read_ahead_sectors: 60,
                ..CachePolicy::default()
            }
        );
    }

    #[test]
    fn formatted_policy_bits_parse_to_the_same_policy() {
        for policy in CachePolicy::all_effective(&[0, 30]) {
            assert_eq!(
                CachePolicy::parse_policy(&policy.format_bits(), policy.read_ahead_sectors)
                    .unwrap(),
                policy
            );
        }
    }

    #[test]
    fn of_1536_settings_600_are_without_contradiction() {
        let all = CachePolicy::all_effective(&[0, 10, 30, 60, 100, 244]);
        assert_eq!(all.len(), 600);
        let effective = |writes, choices| {
            let mut shows: Vec<CachePolicy> = Vec::new();
            for policy in &all {
                let one = policy.without_ineffective_bits(writes, choices);
                if !shows.contains(&one) {
                    shows.push(one);
                }
            }
            shows.len()
        };
        assert_eq!(effective(true, true), 4 + 16 * (5 * 4 + 2));
        assert_eq!(effective(false, false), 1 + 2 * (5 * 3 + 1));
    }

    #[test]
    fn contradictions_are_refused() {
        for (text, word) in [
            ("SEA|XCY", "XHD"),
            ("CRD", "SEA"),
            ("SEA|SEA", "twice"),
            ("SEA|FOO", "FOO"),
            ("", "SEA"),
        ] {
            let error = CachePolicy::parse_policy(text, 10).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
