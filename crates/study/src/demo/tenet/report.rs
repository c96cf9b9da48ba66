//! The report of the run: one HTML file that needs nothing else.

use super::figures;
use super::outcome::{self, ChannelOutcome, TenetOutcome};
use super::plan::{HURRY, LOAD_UDP, PERIOD, T1};
use super::text::{FIRST_SET_UP, PARTS, beside_the_paper, beyond, udp_words, verdict};
use crate::demo::outcome::Verdict;
use crate::demo::report::{begin, embed, machine};
use crate::demo::text::{ms, played_again};
use crate::plot::{Frame, Panel, colour, escape};
use crate::sequoia::panels;
use std::fmt::Write;

const SIZE: (f64, f64) = (388.0, 292.0);
const FRAME: Frame = Frame { left: 48.0, right: 380.0, top: 52.0, bottom: 256.0, text: 0.84 };

/// The whole report.
pub fn html(outcome: &TenetOutcome) -> String {
    let mut page = String::with_capacity(1 << 18);
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, outcome);
    page
}

fn write_page(page: &mut String, outcome: &TenetOutcome) -> std::fmt::Result {
    begin(page, "Tenet")?;
    head(page, outcome)?;
    legend(page, outcome)?;
    writeln!(page, "<figure><div class=\"panels\">")?;
    let course = outcome.course();
    let panels: [(&str, &str, Panel); 6] = [
        ("Figure 14", "A channel and a UDP video under load", panels::under_load(&course)),
        ("Figure 15", "Two channels; the second program sends too often", panels::protected(&course)),
        ("Every frame", "Delay from program to program; ticks above: lost", figures::units(outcome)),
        ("Figure 13", "Delay of each packet at the bottleneck", panels::delays(&course)),
        ("Figure 12", "How many packets are at the bottleneck", panels::waiting(&course)),
        ("The same over time", "Packets at the bottleneck", panels::queue_over_time(&course)),
    ];
    for (title, words, panel) in &panels {
        draw(page, title, words, panel)?;
    }
    writeln!(
        page,
        "</div><figcaption>Red ground: the line is congested. Dashed lines up: the load comes, the second \
         program begins to send {HURRY} times as often as agreed, both end. Diamonds: printed in the \
         paper.</figcaption></figure>"
    )?;
    tables(page, outcome)?;
    method(page, outcome)?;
    let json = outcome::to_json(outcome).map(|json| json.to_string()).unwrap_or_default();
    embed(page, &json)?;
    writeln!(page, "</main></body></html>")
}

fn head(page: &mut String, outcome: &TenetOutcome) -> std::fmt::Result {
    writeln!(
        page,
        "<header><p class=\"kicker\">Rota demo tenet &middot; virtual wire &middot; bottleneck {T1} &middot; \
         five hosts, two gateways</p>"
    )?;
    writeln!(page, "<h1>A promise across a congested line</h1>")?;
    writeln!(
        page,
        "<p class=\"lead\">Two videos go over channels and one over UDP from a campus to another one. All \
         cross \
         one line of {T1}, as do the TCP and UDP that congest it: the Tenet paper's experiment on the \
         Sequoia \
         2000 network (1994, section 5.2) again.</p>"
    )?;
    let class = if outcome.verdict() == Verdict::Kept { "good" } else { "bad" };
    writeln!(page, "<p class=\"verdict {class}\">{}</p></header>", escape(&verdict(outcome)))
}

fn legend(page: &mut String, outcome: &TenetOutcome) -> std::fmt::Result {
    write!(page, "<p class=\"legend\">")?;
    let channels = outcome.channels.iter().map(|of| (of.colour(), of.name()));
    for (number, name) in channels.chain([(panels::UDP_COLOUR, "UDP video".to_owned())]) {
        write!(page, "<span><i style=\"background:{}\"></i>{}</span>", colour(number), escape(&name))?;
    }
    writeln!(page, "</p>")
}

fn draw(page: &mut String, title: &str, words: &str, panel: &Panel) -> std::fmt::Result {
    let (width, height) = SIZE;
    writeln!(page, "<section class=\"panel\"><h4>{title}</h4><p class=\"score\">{words}</p>")?;
    writeln!(
        page,
        "<svg viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-label=\"{title}\">"
    )?;
    panel.draw(page, &FRAME, None)?;
    writeln!(page, "</svg></section>")
}

fn tables(page: &mut String, outcome: &TenetOutcome) -> std::fmt::Result {
    writeln!(page, "<h2>The paper&rsquo;s numbers beside ours</h2><div class=\"wide\"><table><thead><tr>")?;
    writeln!(page, "<th>what</th><th>paper, 1994</th><th>here, virtual wire</th></tr></thead><tbody>")?;
    for [what, paper, ours] in beside_the_paper(outcome) {
        writeln!(page, "<tr><td class=\"words\">{what}</td><td>{paper}</td><td>{ours}</td></tr>")?;
    }
    writeln!(
        page,
        "</tbody></table></div><p class=\"note\">{FIRST_SET_UP} A packet at the bottleneck \
         waits, is held, or is on the line.</p><div class=\"wide\">"
    )?;
    writeln!(page, "</div><h2>The figures</h2><div class=\"wide\"><table><thead><tr>")?;
    writeln!(
        page,
        "<th>stream</th><th>frames</th><th>lost</th><th>late</th><th>bound ms</th><th>longest ms</th>"
    )?;
    for part in PARTS {
        writeln!(page, "<th>kbit/s {part}</th>")?;
    }
    writeln!(page, "<th>refused at the source</th></tr></thead><tbody>")?;
    let rates = |came: &[(u64, u64)]| {
        let cells = outcome.times.parts().map(|part| outcome.rate_bps(came, &part) / 1_000);
        cells.map(|rate| format!("<td>{rate}</td>")).concat()
    };
    for of in &outcome.channels {
        writeln!(
            page,
            "<tr><td>channel {} from \
             {}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{}<td>{}</td></tr>",
            of.service,
            escape(&of.from),
            of.figures.frames,
            of.figures.lost,
            beyond(of),
            ms(of.bound.as_nanos()),
            ms(of.delay_max_ns()),
            rates(&of.conduct.came()),
            of.conduct.excess.len()
        )?;
    }
    let lost = outcome.udp.iter().filter(|unit| unit.arrived_ns.is_none()).count();
    let longest = outcome.udp.iter().filter_map(|u| u.arrived_ns?.checked_sub(u.at_ns)).max().unwrap_or(0);
    writeln!(
        page,
        "<tr><td>UDP video</td><td>{}</td><td>{lost}</td><td>&ndash;</td><td>none</td><td>{}</td>{}\
         <td>&ndash;</td></tr></tbody></table></div>",
        outcome.udp.len(),
        ms(longest),
        rates(&outcome.udp_came())
    )?;
    let [a, b, c] = outcome.times.parts().map(|part| udp_words(outcome, &part));
    writeln!(page, "<p class=\"note\">UDP video: {a} before, {b} under load, {c} after.</p>")
}

fn method(page: &mut String, outcome: &TenetOutcome) -> std::fmt::Result {
    let excused: u64 = outcome.channels.iter().map(ChannelOutcome::excused).sum();
    let again =
        played_again(outcome.replays).map(|again| format!(" This run was {again}.")).unwrap_or_default();
    writeln!(page, "<h2>How these figures were obtained</h2><ul class=\"method\">")?;
    for item in [
        format!(
            "<b>Virtual wire.</b> Hosts and gateways are network namespaces of one machine ({}; isolation: \
             {}). \
             The line is a link whose two directions are shaped to {T1}. Nothing here was measured on a \
             cable.",
            escape(&machine::describe()),
            escape(&outcome.isolation)
        ),
        format!(
            "<b>Streams.</b> The same clip three times, one frame every {PERIOD}: 8 a second, where the \
             paper has \
             about ten of 580 kbit/s. Three of those would not fit the line even without a load."
        ),
        format!(
            "<b>Load.</b> One TCP connection that sends as much as it can, and {LOAD_UDP} of UDP, between \
             two other \
             hosts. The gateways' kernels forward them and the UDP video; neither is marked."
        ),
        "<b>Delay</b> of a frame on a channel counts from when it was due by its contract (handed over, \
         and a \
         period after the one before) to the kernel's receive stamp of its last octet. A program that sends \
         too often waits for its own account: the channel takes what the contract says, and the rest finds \
         no room in the program's memory."
            .to_string(),
        "<b>The bottleneck.</b> A packet&rsquo;s stay at the gateway sock is the time from its arrival \
         there to \
         its arrival at the gateway behind the line, by the event logs of both; its delay begins when it was \
         eligible by X<sub>min</sub> of its channel&rsquo;s packets. On an idle virtual wire a packet \
         arrives at \
         once; a real line would add the 7 ms of its own transmission. The paper measured one channel, these \
         figures have both."
            .to_string(),
        format!(
            "<b>Host stalls.</b> A frame beyond its bound is excused only by evidence recorded apart \
             from it: {excused} frames are. A run with more than 5 % is played again, at most twice, and \
             then the machine is unfit to judge.{again}"
        ),
    ] {
        writeln!(page, "<li>{item}</li>")?;
    }
    writeln!(page, "</ul>")
}
