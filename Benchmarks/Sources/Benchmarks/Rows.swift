// Every promise that is measured, beside its reference and its goal (docs/benchmarks.md says what each does).

let rows: [Row] = firestoreRows + realtimeRows + longRows

private let firestoreRows = [
  Row(
    "durable commits, 64 gRPC clients / bare engine, batches of 100", goal: "0.50", unit: "documents/s",
    measure: durableCommits, reference: bareEngine),
  Row(
    "GetDocument over gRPC / bare NIOHTTP2 handler", goal: "0.50", unit: "calls/s",
    measure: getDocument, reference: bareGetDocument),
]

private let realtimeRows = [
  Row(
    "Realtime Database writes, durable, 100 connections / bare WebSocket echo", goal: "0.30",
    unit: "writes/s",
    measure: { try await durableWrites($0, connections: 100) },
    reference: { try await bareEcho($0, connections: 100) }),
  Row(
    "Realtime Database fan-out, 1,000 listeners / bare broadcast", goal: "0.80", unit: "messages/s",
    measure: { try await fanOut($0, listeners: 1000) },
    reference: { try await bareFanOut($0, listeners: 1000) }),
  Row(
    "memory of an idle listening connection / bare WebSocket", goal: "12 KB", unit: "bytes",
    measure: { try await idleConnection($0, connections: 4000) },
    reference: { try await bareIdleConnection($0, connections: 4000) }),
  Row(
    [
      "write to another client's event at 1,000 writes/s, p50 / the synced append alone",
      "the same, p99",
    ],
    goals: ["1.5 ms more", ""], units: ["µs", "µs"],
    measure: { try await eventLatency($0, perSecond: 1000) },
    reference: { try await bareAppendLatency($0, perSecond: 1000) }),
]

private let longRows = [
  Row(
    "Realtime Database fan-out, 10,000 listeners / bare broadcast", goal: "0.80", unit: "messages/s",
    in: .realtime, measure: { try await fanOut($0, listeners: 10_000) },
    reference: { try await bareFanOut($0, listeners: 10_000) }),
  Row(
    "memory of an idle listening connection, 18,800 of them / bare WebSocket", goal: "12 KB", unit: "bytes",
    in: .realtime, measure: { try await idleConnection($0, connections: 18_800) },
    reference: { try await bareIdleConnection($0, connections: 18_800) }),
  Row(
    "connection storm: connected, authenticated and listening / bare WebSocket connected", goal: "",
    unit: "a second",
    in: .realtime, measure: { try await connectionStorm($0, connections: 10_000) },
    reference: { try await bareConnectionStorm($0, connections: 10_000) }),
  Row(
    "writes with 18,800 listeners elsewhere / with one", goal: "0.83", unit: "writes/s", in: .realtime,
    measure: { try await writesBesideListeners($0, listeners: 18_800) },
    reference: { try await writesBesideListeners($0, listeners: 1) }),
  Row(
    [
      "resume of a listen on 50,000 children of which one changed: bytes sent / of a listen without hashes",
      "the same, time",
    ],
    goals: ["", ""], units: ["bytes", "µs"], in: .realtime,
    measure: { try await resume($0, children: 50_000, withHashes: true) },
    reference: { try await resume($0, children: 50_000, withHashes: false) }),
  Row(
    ["import of 1 GB by REST / of 64 MB", "the same, memory at its peak beyond that before"],
    goals: ["", "1.30"], units: ["MB/s", "MB"], in: .realtime, mostRounds: 1,
    measure: { try await importing($0, megabytes: 1024) },
    reference: { try await importing($0, megabytes: 64) }),
  Row(
    ["export of 1 GB by REST / of 64 MB", "the same, memory at its peak beyond that before"],
    goals: ["", "1.30"], units: ["MB/s", "MB"], in: .realtime, mostRounds: 1,
    measure: { try await exporting($0, megabytes: 1024) },
    reference: { try await exporting($0, megabytes: 64) }),
  Row(
    "writes to a database of 1 GB / of 10 MB", goal: "0.83", unit: "writes/s", in: .realtime,
    measure: { try await writesToDatabase($0, megabytes: 1024) },
    reference: { try await writesToDatabase($0, megabytes: 10) }),
  Row(
    "writes to a database of 10 GB / of 10 MB", goal: "0.83", unit: "writes/s", in: .large,
    measure: { try await writesToDatabase($0, megabytes: 10_240) },
    reference: { try await writesToDatabase($0, megabytes: 10) }),
]
