//! The settings of a station: those of its medium, of link control and of circuits.

use crate::circuits::CircuitSettings;
use crate::llc::LlcSettings;
use rota_admission::LinkModel;
use rota_admission::cpu::Costs;
use rota_medium::SettingsError;
use rota_units::{BitRate, Octets, Span};
use std::ops::{Deref, DerefMut};

/// Times, rates and limits of a station. Those of the medium are read and set here as well: all stations of a
/// segment agree on them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The medium's.
    pub medium: rota_medium::Settings,
    /// Logical link control, each station's own affair.
    pub llc: LlcSettings,
    /// Circuits of the native-mode transport, likewise.
    pub circuits: CircuitSettings,
    /// The CPU of channels of this port, which is admitted where its costs are known. The port's own affair.
    pub cpu: Option<CpuSettings>,
}

/// The CPU that a node gives to its channels. Of several ports it gives the least share and the least delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSettings {
    /// The costs of circuits, as `rota calibrate` measures them.
    pub costs: Costs,
    /// The share of one CPU for promised work, in millionths.
    pub share_ppm: u32,
    /// Within so long the work of a unit is to be done.
    pub delay: Span,
}

impl CpuSettings {
    /// Half of the CPU: the other half is for ordinary traffic and the other circuits.
    pub const SHARE_PPM: u32 = 500_000;
    /// A third of the cycle of 30 Hz.
    pub const DELAY: Span = Span::from_millis(10);

    /// The usual ones at these costs.
    pub const fn of(costs: Costs) -> Self {
        Self { costs, share_ppm: Self::SHARE_PPM, delay: Self::DELAY }
    }
}

impl Settings {
    /// Settings for an Ethernet segment of `rate` whose largest port buffer is `port_queue`.
    pub fn ethernet(rate: BitRate, port_queue: Octets) -> Self {
        rota_medium::Settings::ethernet(rate, port_queue).into()
    }

    /// The same with another MTU: what a frame costs, how units are cut and how long timers wait follow it.
    pub fn ethernet_of(rate: BitRate, port_queue: Octets, mtu: u16) -> Self {
        rota_medium::Settings::ethernet_of(rate, port_queue, mtu).into()
    }

    /// See [`rota_medium::Settings::tunnel_of`]. It carries no link control, whose frames no tag proves.
    pub fn tunnel_of(rate: BitRate, port_queue: Octets, mtu: u16, headers: u16) -> Self {
        rota_medium::Settings::tunnel_of(rate, port_queue, mtu, headers).into()
    }

    /// The same with other settings of the medium.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut rota_medium::Settings)) -> Self {
        change(&mut self.medium);
        self
    }

    /// The medium's, as it tells them.
    pub(crate) fn of_medium(&self) -> rota_medium::Settings {
        rota_medium::Settings { llc_address: self.llc.address, ..self.medium.clone() }
    }

    /// See [`rota_medium::Settings::with_link`].
    #[must_use]
    pub fn with_link(self, link: LinkModel) -> Self {
        Self { medium: self.medium.with_link(link), ..self }
    }

    /// See [`rota_medium::Settings::with_delay`].
    #[must_use]
    pub fn with_delay(self, delay: Span) -> Self {
        Self { medium: self.medium.with_delay(delay), ..self }
    }

    /// See [`rota_medium::Settings::with_nrt_latency`].
    #[must_use]
    pub fn with_nrt_latency(self, latency: Span) -> Self {
        Self { medium: self.medium.with_nrt_latency(latency), ..self }
    }

    /// See [`rota_medium::Settings::with_cycle`].
    ///
    /// # Errors
    /// No cycle of that length can be kept.
    pub fn with_cycle(self, trt: Span) -> Result<Self, SettingsError> {
        Ok(Self { medium: self.medium.with_cycle(trt)?, ..self })
    }

    /// See [`rota_medium::Settings::proven`].
    #[must_use]
    pub fn proven(self) -> Self {
        Self { medium: self.medium.proven(), ..self }
    }

    /// See [`rota_medium::Settings::with_death_timeout`].
    ///
    /// # Errors
    /// The timer is too short for the others.
    pub fn with_death_timeout(self, death: Span) -> Result<Self, SettingsError> {
        Ok(Self { medium: self.medium.with_death_timeout(death)?, ..self })
    }
}

impl From<rota_medium::Settings> for Settings {
    fn from(medium: rota_medium::Settings) -> Self {
        Self { medium, llc: LlcSettings::default(), circuits: CircuitSettings::NONE, cpu: None }
    }
}

impl Deref for Settings {
    type Target = rota_medium::Settings;

    fn deref(&self) -> &rota_medium::Settings {
        &self.medium
    }
}

impl DerefMut for Settings {
    fn deref_mut(&mut self) -> &mut rota_medium::Settings {
        &mut self.medium
    }
}
