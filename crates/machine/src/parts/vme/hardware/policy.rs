//! Cache policy of a controller: the bits that a driver gives with each command.

/// Cache policy of one class of accesses: bits and read-ahead distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Policy {
    /// Search bit (SEA): the controller looks for sectors in the cache.
    pub search: bool,
    /// Read cache bit (CRD): the controller keeps read sectors.
    pub save_reads: bool,
    /// Read-ahead priority bit (RAP): read-ahead comes before waiting writes.
    pub ahead_priority: bool,
    /// Write cache bit (CWT): the controller keeps written sectors.
    pub save_writes: bool,
    /// Sort bit for reads (SRD): the controller takes the nearest waiting read, not the first.
    pub sort_reads: bool,
    /// Sort bit for writes (SWT): the controller takes the nearest waiting write, not the first.
    pub sort_writes: bool,
    /// Head bit (XHD): read-ahead crosses the end of a track.
    pub across_heads: bool,
    /// Cylinder bit (XCY): read-ahead crosses the end of a cylinder.
    pub across_cylinders: bool,
    /// Read-ahead distance, in sectors.
    pub ahead_sectors: u32,
}

/// Maximum read-ahead of a VMEbus controller with policy bits, in sectors (Zachariassen 1987).
pub const AHEAD_SECTORS_MAX: u32 = 244;

impl Policy {
    /// Returns the policy bits with their names, in a fixed order.
    pub fn bits(&mut self) -> [(&'static str, &mut bool); 8] {
        [
            ("SEA", &mut self.search),
            ("CRD", &mut self.save_reads),
            ("RAP", &mut self.ahead_priority),
            ("CWT", &mut self.save_writes),
            ("SRD", &mut self.sort_reads),
            ("SWT", &mut self.sort_writes),
            ("XHD", &mut self.across_heads),
            ("XCY", &mut self.across_cylinders),
        ]
    }

    /// Parses policy bits such as `SEA|XHD`, or `0` for none.
    ///
    /// # Errors
    ///
    /// A message about a bit that is unknown, given twice, or without effect because another bit is
    /// missing.
    pub fn parse(text: &str, ahead_sectors: u32) -> Result<Self, String> {
        let mut policy = Self {
            ahead_sectors,
            ..Self::default()
        };
        if text != "0" {
            for word in text.split('|') {
                let mut bits = policy.bits();
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
        policy.check()?;
        Ok(policy)
    }

    /// Reports whether read-ahead, once started, runs to its end before a waiting write. Across
    /// cylinders, the controller's processor moves the arm between two operations of the drive, and
    /// sees the write; within a cylinder, read-ahead is one operation. (Inferred: Zachariassen
    /// 1987's copies of files keep what was read ahead, those of raw partitions lose it, and XCY is
    /// the bit by which the two differ.)
    pub fn holds_arm(&self) -> bool {
        self.ahead_priority || !self.across_cylinders
    }

    /// Formats the policy bits, such as `SEA|XHD`, or `0` for none.
    pub fn text(mut self) -> String {
        let bits = self.bits();
        let set = bits.into_iter().filter(|(_, bit)| **bit);
        let names: Vec<&str> = set.map(|(name, _)| name).collect();
        match names.is_empty() {
            true => "0".to_owned(),
            false => names.join("|"),
        }
    }

    /// Returns all policies without contradictions, with each of the given read-ahead distances.
    pub fn all(distances: &[u32]) -> Vec<Self> {
        let mut all = Vec::new();
        for mask in 0..256_u32 {
            let mut policy = Self::default();
            for (place, (_, bit)) in policy.bits().into_iter().enumerate() {
                *bit = mask & (1 << place) != 0;
            }
            if policy.check().is_ok() {
                all.extend(distances.iter().map(|distance| Self {
                    ahead_sectors: *distance,
                    ..policy
                }));
            }
        }
        all
    }

    /// Returns the policy reduced to the settings that can have an effect. `writes` is whether a
    /// write came, and `choices` whether two commands waited for the arm. Two policies with the
    /// same result behave alike. The result may be a policy that cannot be given.
    pub fn effective(self, writes: bool, choices: bool) -> Self {
        let ahead_sectors = match self.search {
            true => self.ahead_sectors,
            // Without a search nothing is read ahead.
            false => 0,
        };
        let ahead = ahead_sectors > 0;
        Self {
            search: self.search,
            save_reads: self.save_reads,
            // It is looked at only through `holds_arm`, and that only where a
            // write waits.
            ahead_priority: ahead && writes && self.across_cylinders && self.ahead_priority,
            save_writes: writes && self.save_writes,
            sort_reads: choices && self.sort_reads,
            sort_writes: choices && writes && self.sort_writes,
            across_heads: ahead && self.across_heads,
            across_cylinders: match ahead {
                true => self.across_cylinders,
                false => writes && !self.holds_arm(),
            },
            ahead_sectors,
        }
    }

    fn check(&self) -> Result<(), String> {
        let needs = [
            (
                self.across_cylinders && !self.across_heads,
                "XCY needs XHD: a cylinder ends where its last head's track does",
            ),
            (
                self.save_writes && !self.search,
                "CWT needs SEA: without it, the cache is never searched",
            ),
            (
                self.save_reads && !self.search,
                "CRD needs SEA: without it, the cache is never searched",
            ),
            (
                self.across_heads && !self.search,
                "XHD needs SEA: without a search nothing is read ahead",
            ),
            (
                self.ahead_priority && !self.search,
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
        let policy = Policy::parse("SEA|XHD|XCY", 100).unwrap();
        assert!(policy.search && policy.across_heads && policy.across_cylinders);
        assert!(!policy.save_reads && policy.ahead_sectors == 100);
        assert_eq!(
            Policy::parse("0", 60).unwrap(),
            Policy {
                ahead_sectors: 60,
                ..Policy::default()
            }
        );
    }

    #[test]
    fn formatted_policy_bits_parse_to_the_same_policy() {
        for policy in Policy::all(&[0, 30]) {
            assert_eq!(
                Policy::parse(&policy.text(), policy.ahead_sectors).unwrap(),
                policy
            );
        }
    }

    #[test]
    fn of_1536_settings_600_are_without_contradiction() {
        let all = Policy::all(&[0, 10, 30, 60, 100, 244]);
        assert_eq!(all.len(), 600);
        let effective = |writes, choices| {
            let mut shows: Vec<Policy> = Vec::new();
            for policy in &all {
                let one = policy.effective(writes, choices);
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
            let error = Policy::parse(text, 10).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
