//! Colours: for dark and light backgrounds, and none at all. Text is in the terminal's own colour, so that
//! it can be read on any background; only what is coded has a colour of its own.

use ratatui::style::{Color, Modifier, Style};

/// Which colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Theme {
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// No colours: patterns instead.
    Mono,
}

/// Numbers of the 256 colours of terminals: token, real-time, ordinary, control, LLC.
const DARK: [u8; 5] = [80, 114, 215, 176, 75];
const LIGHT: [u8; 5] = [30, 28, 130, 90, 25];
/// Channels, each its own as far as they reach; levels, from the lowest to the highest.
const DARK_CHANNELS: [u8; 8] = [114, 80, 179, 141, 204, 75, 150, 216];
const LIGHT_CHANNELS: [u8; 8] = [28, 30, 130, 91, 125, 25, 64, 94];
const DARK_LEVELS: [u8; 8] = [67, 73, 79, 114, 150, 186, 221, 215];
const LIGHT_LEVELS: [u8; 8] = [24, 30, 29, 28, 64, 100, 136, 130];
/// The same kinds without colours.
const PATTERNS: [&str; 5] = ["░", "█", "▒", "·", "▓"];

impl Theme {
    /// What the environment asks for: NO_COLOR (<https://no-color.org>), else the background that COLORFGBG
    /// names, else dark.
    pub fn of_environment() -> Self {
        if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return Self::Mono;
        }
        let told = std::env::var("COLORFGBG").ok();
        let ground = told.and_then(|told| told.rsplit(';').next()?.parse::<u8>().ok());
        if matches!(ground, Some(7 | 15)) { Self::Light } else { Self::Dark }
    }

    /// The next one, for the key.
    pub fn next(self) -> Self {
        match self {
            Self::Dark => Self::Light,
            Self::Light => Self::Mono,
            Self::Mono => Self::Dark,
        }
    }

    /// The colour of a kind of traffic.
    pub fn kind(self, kind: usize) -> Style {
        match self {
            Self::Dark => Style::new().fg(Color::Indexed(DARK[kind % DARK.len()])),
            Self::Light => Style::new().fg(Color::Indexed(LIGHT[kind % LIGHT.len()])),
            Self::Mono => Style::new(),
        }
    }

    /// The colour of a channel, by its place in the list.
    pub fn channel(self, place: usize) -> Style {
        self.of(DARK_CHANNELS[place % 8], LIGHT_CHANNELS[place % 8], Modifier::empty())
    }

    /// The colour of a level of ordinary traffic.
    pub fn level(self, level: usize) -> Style {
        self.of(DARK_LEVELS[level % 8], LIGHT_LEVELS[level % 8], Modifier::empty())
    }

    /// What a bar of a kind is made of.
    pub fn block(self, kind: usize) -> &'static str {
        if self == Self::Mono { PATTERNS[kind % PATTERNS.len()] } else { "█" }
    }

    fn of(self, dark: u8, light: u8, mono: Modifier) -> Style {
        match self {
            Self::Dark => Style::new().fg(Color::Indexed(dark)),
            Self::Light => Style::new().fg(Color::Indexed(light)),
            Self::Mono => Style::new().add_modifier(mono),
        }
    }

    /// Something that is well.
    pub fn good(self) -> Style {
        self.of(114, 28, Modifier::empty())
    }

    /// Something that somebody should look at.
    pub fn bad(self) -> Style {
        self.of(203, 160, Modifier::REVERSED).add_modifier(Modifier::BOLD)
    }

    /// What matters less.
    pub fn faint(self) -> Style {
        self.of(245, 241, Modifier::DIM)
    }

    /// Titles.
    pub fn title(self) -> Style {
        self.of(75, 25, Modifier::empty()).add_modifier(Modifier::BOLD)
    }

    /// The line at the top and the one with the keys.
    pub fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
