-- Rota's frames for Wireshark and tshark, octet by octet as docs/wire.md draws them.
--
--   tshark -X lua_script:dissector/rota.lua -r run.pcapng
--   Wireshark: copy this file into the folder "Personal Lua Plugins" (Help, About, Folders)
--
-- The EtherType is a preference, because it is a setting of the segment. A tag is shown and not proven: the
-- key is not here. A capture of `rota trace save` holds the first octets of each frame only; what was cut off
-- is said to be missing and is no error.

local rota = Proto("rota", "Rota real-time channels")

-- A test holds this list to the kinds of rota-wire: keep one kind on each line.
local KINDS = {
    [1] = "Announce",
    [2] = "Switch",
    [3] = "SwitchAck",
    [4] = "Form",
    [5] = "Token",
    [6] = "TokenAck",
    [7] = "List",
    [8] = "Request",
    [9] = "Claim",
    [10] = "ClaimGrant",
    [11] = "Nack",
    [12] = "Mode",
    [13] = "Data",
    [14] = "Signal",
    [15] = "JoinAnswer",
    [16] = "Report",
    [17] = "Will",
    [18] = "Circuit",
}
local PAYLOADS = { [0] = "none", [1] = "unit behind a unit header", [2] = "RTIP packet" }
local ALGORITHMS = { [1] = "keyed BLAKE3, 16 octets", [2] = "header tag and data tag, 8 octets each" }
local STATES = { [0] = "joining", [1] = "plain", [2] = "ring", [3] = "leaving" }
local PHASES = { [0] = "first rotation", [1] = "real-time", [2] = "non-real-time", [3] = "way home" }
local MODES = { [0] = "plain Ethernet", [1] = "token mode" }
local VERBS = {
    [1] = "connect", [2] = "accept", [3] = "refuse", [4] = "opened", [5] = "opened-ack", [6] = "close",
    [7] = "close-ack", [8] = "tally", [9] = "ask", [10] = "reach", [11] = "reached",
}
local CAUSES = {
    [0] = "closed by its sender", [1] = "peer gone", [2] = "reservation lost", [3] = "no answer",
    [4] = "nobody listens", [5] = "refused by admission", [6] = "sending program ended",
    [7] = "receiving program ended", [8] = "receiver closed", [9] = "node stopped", [10] = "ended by hand",
    [11] = "listener takes another station only", [12] = "no memory at the receiver's node",
    [13] = "receiver was silent for too long",
}
local TPDUS = {
    [1] = "data", [2] = "ack", [3] = "open", [4] = "accept", [5] = "confirm", [6] = "refuse", [7] = "reset",
    [8] = "close", [9] = "closed", [10] = "ask", [11] = "decline",
}
local VERDICTS = { [0] = "prove that you live", [1] = "full", [2] = "other settings", [3] = "held off",
    [4] = "your counter is behind" }

local HEADER = 28
local TAG = 16
local DATA = 13

local f = {}
local function field(name, make, label, ...)
    f[name] = make("rota." .. name, label, ...)
end

field("version", ProtoField.uint8, "Version", base.DEC, nil, 0xf0)
field("algorithm", ProtoField.uint8, "Tag algorithm", base.DEC, ALGORITHMS, 0x0f)
field("kind", ProtoField.uint8, "Kind", base.DEC, KINDS)
field("key_epoch", ProtoField.uint8, "Key epoch", base.DEC)
field("payload", ProtoField.uint8, "Payload kind", base.DEC, PAYLOADS)
field("body_octets", ProtoField.uint16, "Body octets", base.DEC)
field("source", ProtoField.uint16, "Source station", base.DEC)
field("segment", ProtoField.uint32, "Segment", base.DEC)
field("incarnation", ProtoField.uint32, "Incarnation", base.HEX)
field("generation", ProtoField.uint32, "Generation counter", base.DEC)
field("generation_station", ProtoField.uint16, "Generation station", base.DEC)
field("sequence", ProtoField.uint64, "Sequence", base.DEC)
field("tag", ProtoField.bytes, "Tag (not verified here)")
field("header_tag", ProtoField.bytes, "Header tag (not verified here)")
field("data_tag", ProtoField.bytes, "Data tag (not verified here)")

field("label", ProtoField.uint16, "Label", base.DEC)
field("unit", ProtoField.uint16, "Unit", base.DEC)
field("fragment", ProtoField.uint16, "Fragment", base.DEC, nil, 0xfff0)
field("last", ProtoField.bool, "Last fragment", 16, nil, 0x0008)
field("unit_version", ProtoField.uint16, "Unit header version", base.DEC, nil, 0x0007)
field("left_out", ProtoField.uint64, "Units left out by the sending program", base.DEC)
field("unsent", ProtoField.uint32, "Units that waited at the end and never left", base.DEC)
field("unit_octets", ProtoField.uint32, "Unit octets", base.DEC)
field("schedule", ProtoField.uint64, "Schedule (sender's clock, ns)", base.DEC)
field("fragment_data", ProtoField.bytes, "Fragment")

field("rtip_id", ProtoField.uint8, "RTIP id (10)", base.DEC, nil, 0xf0)
field("rtip_version", ProtoField.uint8, "RTIP version", base.DEC, nil, 0x0f)
field("rtip_unused", ProtoField.uint8, "Unused", base.DEC)
field("local_id", ProtoField.uint16, "Local id", base.DEC)
field("packet_octets", ProtoField.uint16, "Packet length", base.DEC)
field("packet", ProtoField.uint16, "Packet sequence number", base.DEC)
field("timestamp", ProtoField.uint32, "Timestamp (us)", base.DEC)
field("ahead", ProtoField.uint16, "Ahead of its deadline at the node before (16 us)", base.DEC)
field("rtip_checksum", ProtoField.uint16, "Header checksum", base.HEX)

field("tpdu_version", ProtoField.uint8, "TPDU version", base.DEC, nil, 0xf0)
field("tpdu_kind", ProtoField.uint8, "TPDU kind", base.DEC, TPDUS, 0x0f)
field("tpdu_flags", ProtoField.uint8, "TPDU flags", base.HEX)
field("tpdu_octets", ProtoField.uint16, "Octets of data", base.DEC)
field("circuit_to", ProtoField.uint32, "The reader's number of the circuit", base.DEC)
field("circuit", ProtoField.uint64, "Circuit", base.HEX)
field("tpdu", ProtoField.uint64, "TPDU", base.DEC)
field("message", ProtoField.uint32, "Message", base.DEC)
field("tpdu_index", ProtoField.uint32, "TPDU of its message", base.DEC)
field("cum", ProtoField.uint64, "All have come up to", base.DEC)
field("cause", ProtoField.uint64, "Because of", base.DEC)
field("limit", ProtoField.uint64, "Room up to", base.DEC)
field("attempt", ProtoField.uint64, "The sender's word for the attempt", base.HEX)
field("serial", ProtoField.uint64, "The receiver's number of the handshake", base.DEC)
field("circuit_from", ProtoField.uint32, "The writer's number of the circuit", base.DEC)
field("circuit_service", ProtoField.uint32, "Service of circuits", base.DEC)
field("window", ProtoField.uint32, "Window (TPDUs)", base.DEC)
field("tpdu_max", ProtoField.uint16, "Octets of data at most", base.DEC)
field("quality", ProtoField.uint8, "Quality", base.HEX)
field("circuit_zero", ProtoField.uint8, "Zero", base.DEC)
field("refused", ProtoField.uint8, "Refusal or cause", base.DEC)
field("reason", ProtoField.uint32, "Reason", base.DEC)
field("tpdus", ProtoField.uint64, "TPDUs in all", base.DEC)
field("messages", ProtoField.uint64, "Messages in all", base.DEC)
field("tpdu_data", ProtoField.bytes, "Data")

field("node", ProtoField.uint64, "Node id", base.HEX)
field("nonce", ProtoField.uint64, "Nonce", base.HEX)
field("boot", ProtoField.uint64, "Boot id", base.HEX)
field("state", ProtoField.uint8, "State", base.DEC, STATES)
field("mode_epoch", ProtoField.uint32, "Mode epoch", base.DEC)
field("trt", ProtoField.uint32, "TRT (ns)", base.DEC)
field("rate", ProtoField.uint64, "Rate (bit/s)", base.DEC)
field("settings", ProtoField.uint64, "Digest of the settings", base.HEX)
field("answers", ProtoField.uint64, "Answers the challenge", base.HEX)
field("llc_address", ProtoField.uint8, "LLC node address", base.DEC)
field("name_octets", ProtoField.uint8, "Name octets", base.DEC)
field("name", ProtoField.string, "Name", base.UNICODE)
field("initiator", ProtoField.uint16, "Initiator", base.DEC)

field("ring_key_epoch", ProtoField.uint8, "Key epoch of the ring", base.DEC)
field("part", ProtoField.uint8, "Part", base.DEC)
field("parts", ProtoField.uint8, "Parts", base.DEC)
field("members", ProtoField.uint8, "Members", base.DEC)
field("member", ProtoField.uint16, "Station", base.DEC)
field("member_address", ProtoField.ether, "Address")
field("member_incarnation", ProtoField.uint32, "Incarnation", base.HEX)

field("cycle", ProtoField.uint32, "Cycle", base.DEC)
field("residual", ProtoField.uint32, "Residual time (ns)", base.DEC)
field("phase", ProtoField.uint8, "Phase", base.DEC, PHASES)
field("flags", ProtoField.uint8, "Flags", base.HEX)
field("rested", ProtoField.bool, "The token rested in the last cycle", 8, nil, 0x01)
field("audited", ProtoField.bool, "It goes to all and names its addressee", 8, nil, 0x02)
field("struck_held", ProtoField.bool, "Left out: kept the token too long", 8, nil, 0x04)
field("struck_sent", ProtoField.bool, "Left out: sent outside its slots", 8, nil, 0x08)
field("struck_station", ProtoField.uint16, "Who was left out", base.DEC)
field("addressee", ProtoField.ether, "Who takes the audited token")
field("leases", ProtoField.bool, "Leases follow the slots", 8, nil, 0x80)
field("hold", ProtoField.uint8, "Hold (steps of 1/255)", base.DEC)
field("drain", ProtoField.uint8, "Drain (steps of 1/255)", base.DEC)
field("stall", ProtoField.uint8, "Longest stall announced (ms)", base.DEC)
field("stall_station", ProtoField.uint8, "Announced by station", base.DEC)
field("gathered", ProtoField.uint8, "Longest stall gathered (ms)", base.DEC)
field("gatherer", ProtoField.uint8, "Gathered from station", base.DEC)
field("position", ProtoField.uint16, "Position", base.DEC)
field("next_nrt", ProtoField.uint16, "First of the next non-real-time round", base.DEC)
field("idle_visits", ProtoField.uint16, "Idle visits", base.DEC)
field("dead_octets", ProtoField.uint16, "Dead octets", base.DEC)
field("dead", ProtoField.bytes, "Dead set")
field("slots", ProtoField.uint16, "Slots", base.DEC)
field("periodic", ProtoField.bool, "Periodic", 16, nil, 0x8000)
field("slot_partition", ProtoField.uint16, "Partition", base.DEC, nil, 0x7000)
field("slot_station", ProtoField.uint16, "Station", base.DEC, nil, 0x0fff)
field("tht", ProtoField.uint32, "THT (ns)", base.DEC)

field("claimed", ProtoField.uint32, "Claimed generation counter", base.DEC)
field("claimed_station", ProtoField.uint16, "Claimed generation station", base.DEC)
field("seen", ProtoField.uint32, "Seen generation counter", base.DEC)
field("seen_station", ProtoField.uint16, "Seen generation station", base.DEC)
field("seen_sequence", ProtoField.uint64, "Seen sequence", base.DEC)
field("mode", ProtoField.uint8, "Mode", base.DEC, MODES)

field("verb", ProtoField.uint8, "Verb", base.DEC, VERBS)
field("code", ProtoField.uint8, "Code", base.DEC, CAUSES)
field("service", ProtoField.uint16, "Service", base.DEC)
field("channel", ProtoField.uint64, "Channel", base.DEC)
field("unit_octets_max", ProtoField.uint32, "Largest unit (octets)", base.DEC)
field("period", ProtoField.uint32, "Period (ns)", base.DEC)
field("bound", ProtoField.uint64, "Bound (ns)", base.DEC)
field("final_unit", ProtoField.uint64, "Final unit", base.DEC)
field("challenge", ProtoField.uint64, "Challenge", base.HEX)
field("verdict", ProtoField.uint8, "Verdict", base.DEC, VERDICTS)
field("silences", ProtoField.uint8, "Times it fell silent", base.DEC)
field("left", ProtoField.uint32, "Has to wait still (ms)", base.DEC)
field("at", ProtoField.uint64, "Made at (sender's clock, ns)", base.DEC)
field("every", ProtoField.uint32, "Every (ms)", base.DEC)
field("frames", ProtoField.uint64, "Frames", base.DEC)
field("octets", ProtoField.uint64, "Octets", base.DEC)
field("foreign_address", ProtoField.ether, "Foreign address")
field("stalls", ProtoField.uint32, "Stalls", base.DEC)
field("stall_longest", ProtoField.uint64, "Longest stall (ns)", base.DEC)
field("faults", ProtoField.uint64, "Faults", base.DEC)
field("dropped", ProtoField.uint64, "Dropped", base.DEC)
field("rotation", ProtoField.uint32, "Rotation (ns)", base.DEC)
field("rotation_longest", ProtoField.uint32, "Longest rotation (ns)", base.DEC)
field("queued", ProtoField.uint32, "Queued", base.DEC)
field("channels_in_all", ProtoField.uint16, "Channels in all", base.DEC)
field("channels", ProtoField.uint8, "Channels", base.DEC)
field("peer", ProtoField.uint16, "Peer station", base.DEC)
field("sends", ProtoField.bool, "This end sends", 8, nil, 0x01)
field("one_clock", ProtoField.bool, "Both ends share a clock", 8, nil, 0x02)
field("units", ProtoField.uint64, "Units", base.DEC)
field("fragments", ProtoField.uint64, "Fragments", base.DEC)
field("late", ProtoField.uint64, "Late", base.DEC)
field("lost", ProtoField.uint64, "Lost", base.DEC)
field("incomplete", ProtoField.uint64, "Incomplete", base.DEC)
field("latest_by", ProtoField.uint64, "Latest by (ns)", base.DEC)
field("unread", ProtoField.uint64, "Not read by the receiving program in time", base.DEC)
field("delay_longest", ProtoField.uint64, "Longest delay (ns)", base.DEC)
field("delay_of_late", ProtoField.uint64, "Longest delay of late (ns)", base.DEC)
field("rest", ProtoField.bytes, "Octets of a later version")

local all = {}
for _, one in pairs(f) do
    all[#all + 1] = one
end
rota.fields = all

local cut = ProtoExpert.new("rota.cut", "The capture holds only a part of this frame", expert.group.UNDECODED,
    expert.severity.NOTE)
local malformed = ProtoExpert.new("rota.malformed", "Not what its kind promises", expert.group.MALFORMED,
    expert.severity.ERROR)
rota.experts = { cut, malformed }

rota.prefs.ethertype = Pref.uint("EtherType", 0x88b5, "EtherType of Rota's frames, a setting of the segment")

-- Reads fields one after another and stops, without an error of Lua, where the octets end.
local Reader = {}
Reader.__index = Reader

function Reader.new(tvb, at, tree)
    return setmetatable({ tvb = tvb, at = at, tree = tree, short = false }, Reader)
end

function Reader:has(octets)
    if self.short or self.at + octets > self.tvb:len() then
        self.short = true
        return false
    end
    return true
end

function Reader:take(name, octets)
    if not self:has(octets) then
        return nil
    end
    local range = self.tvb(self.at, octets)
    self.tree:add(f[name], range)
    self.at = self.at + octets
    return range
end

function Reader:uint(name, octets)
    local range = self:take(name, octets)
    return range and range:uint()
end

function Reader:all(list)
    for _, one in ipairs(list) do
        self:take(one[1], one[2])
    end
end

-- Several fields in one word.
function Reader:bits(octets, names)
    if not self:has(octets) then
        return nil
    end
    local range = self.tvb(self.at, octets)
    for _, name in ipairs(names) do
        self.tree:add(f[name], range)
    end
    self.at = self.at + octets
    return range:uint()
end

-- Reads a part of the tree of its own.
function Reader:below(label, octets, read)
    if not self:has(octets) then
        return
    end
    local parent = self.tree
    self.tree = parent:add(self.tvb(self.at, octets), label)
    read(self.tree)
    self.tree = parent
end

local function token(r)
    r:take("mode_epoch", 4)
    local cycle = r:uint("cycle", 4)
    r:all { { "residual", 4 }, { "trt", 4 } }
    local phase = r:uint("phase", 1)
    local flags = r:bits(1, { "flags", "rested", "audited", "struck_held", "struck_sent", "leases" })
    r:all { { "position", 2 }, { "next_nrt", 2 }, { "idle_visits", 2 } }
    local dead = r:uint("dead_octets", 2)
    if dead and dead > 0 then
        r:take("dead", dead)
    end
    local slots = r:uint("slots", 2)
    for slot = 1, slots or 0 do
        r:below("Slot " .. (slot - 1), 6, function(tree)
            local station = r:bits(2, { "periodic", "slot_partition", "slot_station" })
            local tht = r:uint("tht", 4)
            if tht then
                tree:append_text(": station " .. station % 0x1000 .. ", " .. tht .. " ns")
            end
        end)
    end
    if flags and flags >= 0x80 then
        r:all { { "hold", 1 }, { "drain", 1 }, { "stall", 1 }, { "stall_station", 1 }, { "gathered", 1 }, { "gatherer", 1 } }
    end
    if flags and math.floor(flags / 2) % 2 == 1 then
        r:take("addressee", 6)
    end
    if flags and math.floor(flags / 4) % 4 > 0 then
        r:take("struck_station", 2)
    end
    if phase then
        return "cycle " .. cycle .. ", " .. (PHASES[phase] or "?")
    end
end

local BODIES = {}

BODIES[1] = function(r)
    r:all { { "node", 8 }, { "nonce", 8 }, { "boot", 8 } }
    local state = r:uint("state", 1)
    r:all { { "mode_epoch", 4 }, { "trt", 4 }, { "rate", 8 }, { "settings", 8 }, { "answers", 8 } }
    r:take("llc_address", 1)
    local octets = r:uint("name_octets", 1)
    local name = octets and octets > 0 and r:take("name", octets)
    return (name and name:string(ENC_UTF_8) .. ", " or "") .. (STATES[state] or "?")
end

BODIES[2] = function(r)
    r:all { { "mode_epoch", 4 }, { "nonce", 8 }, { "trt", 4 }, { "rate", 8 }, { "settings", 8 } }
end

BODIES[3] = function(r)
    r:all { { "mode_epoch", 4 }, { "initiator", 2 }, { "nonce", 8 } }
end

BODIES[4] = function(r)
    r:all { { "mode_epoch", 4 }, { "ring_key_epoch", 1 }, { "part", 1 }, { "parts", 1 }, { "settings", 8 } }
    local members = r:uint("members", 1)
    for _ = 1, members or 0 do
        r:below("Member", 20, function(tree)
            local station = r:uint("member", 2)
            r:all { { "member_address", 6 }, { "member_incarnation", 4 }, { "nonce", 8 } }
            tree:append_text(": station " .. (station or "?"))
        end)
    end
    return members and members .. " members"
end

BODIES[5] = token
BODIES[6] = function() end
BODIES[7] = token
BODIES[8] = function() end

BODIES[9] = function(r)
    r:all { { "claimed", 4 }, { "claimed_station", 2 }, { "mode_epoch", 4 } }
end

BODIES[10] = function(r, past)
    r:all { { "claimed", 4 }, { "claimed_station", 2 }, { "seen", 4 }, { "seen_station", 2 } }
    r:all { { "seen_sequence", 6 }, { "ring_key_epoch", 1 } }
    if r.at < past then
        return token(r)
    end
end

BODIES[11] = function(r)
    r:all { { "seen", 4 }, { "seen_station", 2 }, { "mode_epoch", 4 } }
end

BODIES[12] = function(r)
    r:take("mode_epoch", 4)
    local mode = r:uint("mode", 1)
    return mode and MODES[mode]
end

-- In front of the unit header, where the payload is a packet of a channel across segments.
local function rtip(r)
    local id
    r:below("RTIP", 16, function()
        r:bits(1, { "rtip_id", "rtip_version" })
        r:take("rtip_unused", 1)
        id = r:uint("local_id", 2)
        r:take("packet_octets", 2)
        local packet = r:uint("packet", 2)
        r:all { { "timestamp", 4 }, { "ahead", 2 }, { "rtip_checksum", 2 } }
        id = id and packet and "local id " .. id .. ", packet " .. packet
    end)
    return id
end

BODIES[13] = function(r, past)
    local packet = r.payload == 2 and rtip(r)
    local label = r:uint("label", 2)
    local unit = r:uint("unit", 2)
    local place = r:bits(2, { "fragment", "last", "unit_version" })
    r:all { { "left_out", 2 }, { "unit_octets", 4 }, { "schedule", 8 } }
    if r.at < past then
        local there = math.min(past, r.tvb:len()) - r.at
        if there > 0 then
            r.tree:add(f.fragment_data, r.tvb(r.at, there))
        end
        r.short = r.short or past > r.tvb:len()
        r.at = past
    end
    if place then
        local last = math.floor(place / 8) % 2 == 1 and ", the last" or ""
        return (packet or "label " .. label) .. ", unit " .. unit .. ", fragment " .. math.floor(place / 16) .. last
    end
end

BODIES[14] = function(r, past)
    local verb = r:uint("verb", 1)
    r:all { { "code", 1 }, { "service", 2 }, { "label", 2 }, { "channel", 8 }, { "unit_octets_max", 4 } }
    r:all { { verb == 6 and "unsent" or "period", 4 }, { verb == 6 and "left_out" or "bound", 8 }, { "final_unit", 8 } }
    -- In captures of earlier versions a close-ack ends here.
    if verb == 8 or verb == 9 or verb == 7 and r.at < past then
        r:all { { "units", 8 }, { "late", 8 }, { "lost", 8 }, { "incomplete", 8 }, { "latest_by", 8 } }
        r:all { { "unread", 8 } }
    end
    return verb and (VERBS[verb] or "verb " .. verb)
end

BODIES[15] = function(r)
    r:all { { "nonce", 8 }, { "challenge", 8 } }
    local verdict = r:uint("verdict", 1)
    r:all { { "silences", 1 }, { "left", 4 } }
    return verdict and (VERDICTS[verdict] or "?")
end

local LOADS = { "Token", "Real-time", "Ordinary", "Control", "LLC" }

local function load(r, label)
    r:below(label, 16, function(tree)
        local frames, octets = r:take("frames", 8), r:take("octets", 8)
        if octets then
            tree:append_text(": " .. tostring(frames:uint64()) .. " frames, " .. tostring(octets:uint64()) .. " octets")
        end
    end)
end

BODIES[16] = function(r)
    r:all { { "at", 8 }, { "every", 4 } }
    for _, label in ipairs(LOADS) do
        load(r, label)
    end
    for level = 0, 7 do
        load(r, "Level " .. level)
    end
    load(r, "Foreign")
    r:all { { "foreign_address", 6 }, { "stalls", 4 }, { "stall_longest", 8 }, { "faults", 8 }, { "dropped", 8 } }
    r:all { { "rotation", 4 }, { "rotation_longest", 4 }, { "queued", 4 }, { "channels_in_all", 2 } }
    local channels = r:uint("channels", 1)
    for _ = 1, channels or 0 do
        r:below("Channel", 113, function()
            r:all { { "channel", 8 }, { "peer", 2 }, { "label", 2 } }
            r:bits(1, { "sends", "one_clock" })
            r:all { { "unit_octets_max", 4 }, { "period", 4 }, { "tht", 4 }, { "bound", 8 }, { "units", 8 } }
            r:all { { "fragments", 8 }, { "octets", 8 }, { "late", 8 }, { "lost", 8 } }
            r:all { { "incomplete", 8 }, { "latest_by", 8 }, { "unread", 8 }, { "delay_longest", 8 }, { "delay_of_late", 8 } }
        end)
    end
    return channels and channels .. " channels"
end

-- A will says all in its header.
BODIES[17] = function() end

BODIES[18] = function(r)
    local first = r:bits(1, { "tpdu_version", "tpdu_kind" })
    r:take("tpdu_flags", 1)
    local data = r:uint("tpdu_octets", 2)
    r:all { { "circuit_to", 4 }, { "circuit", 8 } }
    local kind = first and first % 16
    if kind == 1 then
        r:all { { "tpdu", 8 }, { "message", 4 }, { "tpdu_index", 4 } }
        if data and data > 0 then
            r:take("tpdu_data", data)
        end
    elseif kind == 2 then
        r:all { { "cum", 8 }, { "cause", 8 }, { "limit", 8 } }
    elseif kind == 3 or kind == 4 or kind == 5 then
        r:all { { "attempt", 8 }, { "serial", 8 }, { "circuit_from", 4 }, { "circuit_service", 4 } }
        r:all { { "window", 4 }, { "tpdu_max", 2 }, { "quality", 1 }, { "circuit_zero", 1 } }
    elseif kind == 6 then
        r:all { { "attempt", 8 }, { "refused", 1 } }
    elseif kind == 7 then
        r:take("refused", 1)
    elseif kind == 8 or kind == 9 then
        r:all { { "tpdus", 8 }, { "messages", 8 } }
    elseif kind == 11 then
        r:take("reason", 4)
    end
    return kind and (TPDUS[kind] or "TPDU of kind " .. kind)
end

function rota.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "Rota"
    local tree = root:add(rota, tvb())
    local r = Reader.new(tvb, 0, tree)
    r:bits(1, { "version", "algorithm" })
    local kind = r:uint("kind", 1)
    r:take("key_epoch", 1)
    r.payload = r:uint("payload", 1)
    local octets = r:uint("body_octets", 2)
    local source = r:uint("source", 2)
    r:all { { "segment", 4 }, { "incarnation", 4 }, { "generation", 4 }, { "generation_station", 2 } }
    r:take("sequence", 6)
    if r.short then
        tree:add_proto_expert_info(tvb:reported_len() > tvb:len() and cut or malformed)
        return
    end
    local name = KINDS[kind] or "kind " .. kind
    tree:append_text(", " .. name .. " from station " .. source)
    local past = HEADER + octets
    local said
    if BODIES[kind] then
        said = BODIES[kind](r, past)
    end
    pinfo.cols.info = "station " .. source .. "  " .. name .. (said and said ~= "" and ", " .. said or "")
    local whole = tvb:reported_len() >= past + TAG
    if not whole or r.at > past then
        tree:add_proto_expert_info(malformed)
    elseif tvb:len() < past + TAG then
        tree:add_proto_expert_info(cut)
    else
        if r.at < past then
            tree:add(f.rest, tvb(r.at, past - r.at))
        end
        tree:add(f.tag, tvb(past, TAG))
        if kind == DATA then
            tree:add(f.header_tag, tvb(past, TAG / 2))
            tree:add(f.data_tag, tvb(past + TAG / 2, TAG / 2))
        end
    end
end

local registered
local function register()
    local ether_types = DissectorTable.get("ethertype")
    if registered then
        ether_types:remove(registered, rota)
    end
    registered = rota.prefs.ethertype
    ether_types:add(registered, rota)
end
rota.prefs_changed = register
register()

-- Fragments of long messages of logical link control. Wireshark decodes 802.2 and SNAP itself, but lets no
-- script have an OUI of its own; so this looks at every frame behind its own dissectors.
local fragment = Proto("rota_llc", "Rota fragment of an LLC message")
local g = {
    dsap = ProtoField.uint8("rota_llc.dsap", "DSAP of the message", base.HEX),
    ssap = ProtoField.uint8("rota_llc.ssap", "SSAP of the message", base.HEX),
    version = ProtoField.uint8("rota_llc.version", "Version", base.DEC, nil, 0xf0),
    last = ProtoField.bool("rota_llc.last", "Last fragment", 8, nil, 0x08),
    priority = ProtoField.uint8("rota_llc.priority", "Priority", base.DEC, nil, 0x07),
    index = ProtoField.uint8("rota_llc.index", "Index", base.DEC),
    message = ProtoField.uint16("rota_llc.message", "Message", base.DEC),
    total = ProtoField.uint16("rota_llc.total", "Octets of the whole message", base.DEC),
    data = ProtoField.bytes("rota_llc.data", "Fragment"),
}
fragment.fields = { g.dsap, g.ssap, g.version, g.last, g.priority, g.index, g.message, g.total, g.data }
local oui, length = Field.new("llc.oui"), Field.new("eth.len")

function fragment.dissector(tvb, pinfo, root)
    local who, octets = oui(), length()
    if not who or not octets or who.value ~= 0x02524f then
        return
    end
    -- Behind OUI and PID; an acknowledgement has a status there and no fragment.
    local at = who.offset + 5
    if tvb:len() < at + 8 or tvb(who.offset + 3, 2):uint() ~= 1 or math.floor(tvb(at + 2, 1):uint() / 16) ~= 1 then
        return
    end
    local past = math.min(tvb:len(), who.offset - 3 + octets.value)
    if past < at + 8 then
        return
    end
    local tree = root:add(fragment, tvb(at, past - at))
    tree:add(g.dsap, tvb(at, 1))
    tree:add(g.ssap, tvb(at + 1, 1))
    tree:add(g.version, tvb(at + 2, 1))
    tree:add(g.last, tvb(at + 2, 1))
    tree:add(g.priority, tvb(at + 2, 1))
    tree:add(g.index, tvb(at + 3, 1))
    tree:add(g.message, tvb(at + 4, 2))
    tree:add(g.total, tvb(at + 6, 2))
    if past > at + 8 then
        tree:add(g.data, tvb(at + 8, past - at - 8))
    end
    local index, message = tvb(at + 3, 1):uint(), tvb(at + 4, 2):uint()
    tree:append_text(", message " .. message .. ", fragment " .. index)
    pinfo.cols.info:append(", Rota message " .. message .. " fragment " .. index)
end

register_postdissector(fragment)
