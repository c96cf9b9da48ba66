//! The dynamic window, as TCP's (TRANSPORT-5.3.3-12, TRANSPORT-R33): slow start, one TPDU more in a round
//! trip, half once in a round trip with a loss, one after a time-out.

/// TPDUs that may be on their way before the first answer (RFC 3390's three or four segments).
const INITIAL: u64 = 4;
/// The window is halved to no less.
const HALF_LEAST: u64 = 2;

/// The dynamic window of a sender.
#[derive(Clone, Debug)]
pub struct Aimd {
    window: u64,
    most: u64,
    /// Slow start ends here.
    threshold: u64,
    /// TPDUs that have arrived since the window last grew by one.
    arrived: u64,
    /// The newest TPDU at the last loss: losses up to it belong to the same round trip.
    recover: u64,
}

impl Aimd {
    /// The window of a circuit on which at most `most` TPDUs may be on their way.
    pub fn new(most: u32) -> Self {
        let most = u64::from(most.max(1));
        Self { window: INITIAL.min(most), most, threshold: most, arrived: 0, recover: 0 }
    }

    /// TPDUs that may be on their way.
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// So many TPDUs have arrived.
    pub fn on_arrived(&mut self, count: u64) {
        if self.window < self.threshold {
            self.window = (self.window + count).min(self.threshold).min(self.most);
            return;
        }
        self.arrived += count;
        while self.arrived >= self.window {
            self.arrived -= self.window;
            self.window = (self.window + 1).min(self.most);
        }
    }

    /// TPDU `lost` is lost; `top` is the newest.
    pub fn on_lost(&mut self, lost: u64, top: u64) {
        if lost > self.recover {
            self.halve(top);
            self.window = self.threshold;
        }
    }

    /// A time-out. Only the first one in a row halves: behind it nothing was sent that could tell more.
    pub fn on_time_out(&mut self, top: u64) {
        if self.window > 1 {
            self.halve(top);
        }
        self.window = 1;
    }

    fn halve(&mut self, top: u64) {
        self.threshold = (self.window / 2).max(HALF_LEAST).min(self.most);
        (self.arrived, self.recover) = (0, top);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TRANSPORT-R33.
    #[test]
    fn the_window_doubles_then_grows_by_one_and_is_halved_once_in_a_round_trip() {
        let mut aimd = Aimd::new(64);
        aimd.on_arrived(4);
        assert_eq!(aimd.window(), 8, "slow start doubles in a round trip");
        aimd.on_arrived(8);
        aimd.on_arrived(16);
        assert_eq!(aimd.window(), 32);
        aimd.on_lost(40, 60);
        aimd.on_lost(43, 61);
        aimd.on_lost(60, 62);
        assert_eq!(aimd.window(), 16, "one round trip, one half");
        aimd.on_arrived(15);
        assert_eq!(aimd.window(), 16);
        aimd.on_arrived(1);
        assert_eq!(aimd.window(), 17, "one more in a round trip");
        aimd.on_lost(61, 80);
        assert_eq!(aimd.window(), 8);
        aimd.on_time_out(80);
        aimd.on_time_out(80);
        assert_eq!(aimd.window(), 1);
        aimd.on_arrived(3);
        assert_eq!(aimd.window(), 4, "slow start up to half of what was");
        aimd.on_arrived(4);
        assert_eq!(aimd.window(), 5);
        aimd.on_arrived(10_000);
        assert_eq!(aimd.window(), 64, "never more than was agreed on");
    }
}
