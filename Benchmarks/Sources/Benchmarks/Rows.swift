// The rows of the benchmark tables: every measurement with its reference and its goal (see docs/benchmarks.md).

/// All rows.
/// - Parameters:
///   - documents: the number of documents in the rows about large collections of Cloud Firestore.
///   - listeners: the number of listeners in the rows about many listeners of Cloud Firestore.
func rows(documents: Int, listeners: Int) -> [Row] {
  firestoreRows + emulatorRows + parsingRows + identityRows + realtimeRows
    + longFirestoreRows(documents: documents, listeners: listeners) + longRealtimeRows
}

/// Rows against Google's emulator, where it is installed.
private let emulatorRows =
  GoogleEmulator.isInstalled
  ? [
    Row(
      "durable bulk load, commits of 500 by 4 connections, warm / Google's emulator in memory, warm",
      goal: "1.50", unit: "documents/s",
      measure: { try await warmBulkLoad($0, documents: 200_000, usesGoogleEmulator: false) },
      reference: { try await warmBulkLoad($0, documents: 200_000, usesGoogleEmulator: true) })
  ] : []

private let firestoreRows = [
  Row(
    "durable commits, 64 gRPC clients / bare engine, batches of 100", goal: "0.50", unit: "documents/s",
    measure: durableCommits, reference: bareEngine),
  Row(
    "GetDocument over gRPC / bare NIOHTTP2 handler", goal: "0.50", unit: "calls/s",
    measure: getDocument, reference: bareGetDocument),
  Row(
    [
      "GetDocument, one call on each of 64 connections / bare NIOHTTP2 handler", "the same, latency p50",
      "the same, latency p99",
    ],
    goals: ["0.50", "", "3 x p50"], units: ["calls/s", "µs", "µs"], measure: sparseGetDocument,
    reference: bareSparseGetDocument),
  Row(
    "durable commits under typical rules / under rules that allow everything", goal: "0.85",
    unit: "documents/s", measure: { try await commitsUnder(.typical, $0) },
    reference: { try await commitsUnder(.open, $0) }),
  Row(
    "the same in an emulator, which counts coverage: commits", goal: "0.85",
    unit: "documents/s", measure: { try await commitsUnder(.typical, $0, isEmulator: true) },
    reference: { try await commitsUnder(.open, $0, isEmulator: true) }),
  Row(
    "GetDocument under typical rules / under rules that allow everything", goal: "0.85", unit: "calls/s",
    measure: { try await getsUnder(.typical, $0) }, reference: { try await getsUnder(.open, $0) }),
  Row(
    "the same in an emulator, which counts coverage: GetDocument", goal: "0.85", unit: "calls/s",
    measure: { try await getsUnder(.typical, $0, isEmulator: true) },
    reference: { try await getsUnder(.open, $0, isEmulator: true) }),
  Row(
    "listens that become current under typical rules / under rules that allow everything", goal: "0.85",
    unit: "listens/s", measure: { try await listensUnder(.typical, $0) },
    reference: { try await listensUnder(.open, $0) }),
  Row(
    "rule decisions on one thread, creation under typical rules / under rules that allow everything",
    goal: "",
    unit: "decisions/s", measure: { try ruleDecisions(.typical, $0) },
    reference: { try ruleDecisions(.open, $0) }),
  Row(
    "rule decisions on one thread, 900 expressions / rules that allow everything", goal: "",
    unit: "decisions/s", measure: { try ruleDecisions(.heavy, $0) },
    reference: { try ruleDecisions(.open, $0) }),
  Row(
    [
      "durable commit at 500/s beside writes that use up a decision's budget, p50 / beside usual writes",
      "the same, p99",
    ],
    goals: ["", ""], units: ["µs", "µs"],
    measure: { try await commitTimesDuringWrites($0, exhaustsBudget: true) },
    reference: { try await commitTimesDuringWrites($0, exhaustsBudget: false) }),
  Row(
    "query of 100 documents by an index / bare engine's scan of 100 entries and 100 gets", goal: "0.40",
    unit: "queries/s", measure: queryRate, reference: bareQueryRate),
  Row(
    "memory of an idle Listen stream / bare NIOHTTP2 stream", goal: "8 KB", unit: "bytes",
    measure: { try await idleStream($0, streams: 4000) },
    reference: { try await bareIdleStream($0, streams: 4000) }),
  Row(
    [
      "start to first answer, empty directory / Google's emulator as published",
      "the same, memory when idle", "the same, memory after 1,000 documents",
    ],
    goals: ["150 ms", "40 MiB", ""], units: ["ms", "MiB", "MiB"],
    measure: startEmpty, reference: { _ in publishedEmulator }),
]

private let parsingRows = [
  Row(
    "Commit request of a document read into the model / by SwiftProtobuf", goal: "10", unit: "requests/s",
    measure: { try readCommits($0) }, reference: { try stockReadCommits($0) }),
  Row(
    "RunQuery request read into the model / by SwiftProtobuf", goal: "10", unit: "requests/s",
    measure: { try readQueries($0) }, reference: { try stockReadQueries($0) }),
  Row(
    "Realtime Database put read into a request / by JSONSerialization", goal: "10", unit: "messages/s",
    measure: { try readPuts($0) }, reference: { try stockReadPuts($0) }),
]

private let identityRows = [
  Row(
    "verification of a token that was verified before / its RSA signature alone", goal: "2,000 ns",
    unit: "ns",
    measure: warmVerification, reference: signatureVerification),
  Row(
    "sign-ins with a password / bare scrypt on as many threads", goal: "0.80", unit: "sign-ins/s",
    measure: signIns, reference: bareHashes),
  Row(
    [
      "durable commit at 500/s while passwords are hashed, p50 / without", "the same, p99",
    ],
    goals: ["", ""], units: ["µs", "µs"],
    measure: { try await commitTimes($0, during: .inServer) },
    reference: { try await commitTimes($0, during: .none) }),
  Row(
    [
      "the same, p50 / while another process hashes on as many threads", "the same, p99",
    ],
    goals: ["", "1.10"], units: ["µs", "µs"],
    measure: { try await commitTimes($0, during: .inServer) },
    reference: { try await commitTimes($0, during: .inOtherProcess) }),
]

private let realtimeRows = [
  Row(
    "Realtime Database writes, durable, 100 connections / bare WebSocket echo", goal: "0.30",
    unit: "writes/s",
    measure: { try await durableWrites($0, connections: 100) },
    reference: { try await bareEcho($0, connections: 100) }),
  Row(
    "Realtime Database writes under typical rules / under open rules", goal: "0.85", unit: "writes/s",
    measure: { try await writesUnderRules($0, isOpen: false) },
    reference: { try await writesUnderRules($0, isOpen: true) }),
  Row(
    "the same in an emulator, which counts coverage: Realtime Database writes", goal: "0.85",
    unit: "writes/s", measure: { try await writesUnderRules($0, isOpen: false, isEmulator: true) },
    reference: { try await writesUnderRules($0, isOpen: true, isEmulator: true) }),
  Row(
    "decisions about Realtime Database writes on one thread, counted for coverage / not counted", goal: "",
    unit: "decisions/s", measure: { try realtimeDecisions(areCounted: true, $0) },
    reference: { try realtimeDecisions(areCounted: false, $0) }),
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

/// The rows share one database of this number of documents, which the first row loads.
private func longFirestoreRows(documents: Int, listeners: Int) -> [Row] {
  let many = grouped(Double(documents))
  let waiting = grouped(Double(listeners))
  let fewer = documents / 10 / BulkRequests.perRequest * BulkRequests.perRequest
  return [
    Row(
      [
        "bulk load of \(many) documents, commits of 500 / of \(grouped(Double(fewer)))",
        "the same, memory before", "the same, memory at its peak", "the same, memory at the end",
      ],
      goals: ["", "", "1.30", "1.30"], units: ["documents/s", "MiB", "MiB", "MiB"], in: .firestore,
      maximumRounds: 1, measure: { try await bulkLoad($0, documents: documents) },
      reference: { try await bulkLoad($0, documents: fewer) }),
    Row(
      [
        "query of 100 among \(many) documents, p50 / among 1,000",
        "the same, queries for any of the documents",
      ],
      goals: ["1.30", ""], units: ["µs", "µs"], in: .firestore,
      measure: { try await queryTimes($0, documents: documents) },
      reference: { try await queryTimes($0, documents: 1000) }),
    Row(
      "durable commits beside \(waiting) idle listeners / beside one", goal: "0.83", unit: "documents/s",
      in: .firestore, maximumRounds: 3,
      measure: { try await commitsWithIdleListeners($0, documents: documents, listeners: listeners) },
      reference: { try await commitsWithIdleListeners($0, documents: documents, listeners: 1) }),
    expiry(streams: 10_000), expiry(streams: listeners),
    lookups(listens: 10_000), lookups(listens: listeners),
    Row(
      ["start to first answer, \(many) documents / empty directory", "the same, memory when idle"],
      goals: ["", ""], units: ["ms", "MiB"], in: .firestore,
      measure: { try await startLoaded($0, documents: documents) },
      reference: { try await Array(startEmpty($0).prefix(2)) }),
  ]
}

private func expiry(streams: Int) -> Row {
  Row(
    [
      "durable commit at 500/s while \(grouped(Double(streams))) Listen streams are idle, p99 / without streams",
      "the same, longest", "while the streams expire, p99", "the same, longest",
    ],
    goals: ["1.50", "", "1.50", ""], units: ["µs", "µs", "µs", "µs"], in: .firestore, maximumRounds: 3,
    measure: { try await commitTimesAtExpiry($0, streams: streams) }, reference: commitTimesWithoutStreams)
}

private func lookups(listens: Int) -> Row {
  Row(
    [
      "durable commit at 500/s while a document changes that the rules of \(grouped(Double(listens))) listens read, p99 / "
        + "while it does not",
      "the same, longest", "the same, until all listens have ended after a change that denies them",
    ],
    goals: ["", "", ""], units: ["µs", "µs", "ms"], in: .firestore, maximumRounds: 1,
    measure: { try await commitTimesDuringLookups($0, listens: listens, changes: true) },
    reference: { try await commitTimesDuringLookups($0, listens: listens, changes: false) })
}

private let longRealtimeRows = [
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
    measure: { try await writesWithOtherListeners($0, listeners: 18_800) },
    reference: { try await writesWithOtherListeners($0, listeners: 1) }),
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
    goals: ["", "1.30"], units: ["MB/s", "MB"], in: .realtime, maximumRounds: 1,
    measure: { try await importRate($0, megabytes: 1024) },
    reference: { try await importRate($0, megabytes: 64) }),
  Row(
    ["export of 1 GB by REST / of 64 MB", "the same, memory at its peak beyond that before"],
    goals: ["", "1.30"], units: ["MB/s", "MB"], in: .realtime, maximumRounds: 1,
    measure: { try await exportRate($0, megabytes: 1024) },
    reference: { try await exportRate($0, megabytes: 64) }),
  Row(
    "writes to a database of 1 GB / of 10 MB", goal: "0.83", unit: "writes/s", in: .realtime,
    measure: { try await writesToDatabase($0, megabytes: 1024) },
    reference: { try await writesToDatabase($0, megabytes: 10) }),
  Row(
    "longest write while 10,000 listens are decided again / without new rules", goal: "50 ms more",
    unit: "ms", in: .realtime,
    measure: { try await longestWriteDuringRules($0, listens: 10_000, changes: true) },
    reference: { try await longestWriteDuringRules($0, listens: 10_000, changes: false) }),
  Row(
    "longest write while 20,000 paths are updated under rules / under open rules", goal: "50 ms more",
    unit: "ms", in: .realtime,
    measure: { try await longestWriteDuring(.paths, isOpen: false, $0) },
    reference: { try await longestWriteDuring(.paths, isOpen: true, $0) }),
  Row(
    "longest write while a regular expression decides texts of 2 MB / under open rules", goal: "50 ms more",
    unit: "ms", in: .realtime,
    measure: { try await longestWriteDuring(.text, isOpen: false, $0) },
    reference: { try await longestWriteDuring(.text, isOpen: true, $0) }),
  Row(
    "writes under a rule over a root of 100 MB / of 10 MB", goal: "0.83", unit: "writes/s", in: .realtime,
    measure: { try await writesUnderRulesOverRoot($0, megabytes: 100) },
    reference: { try await writesUnderRulesOverRoot($0, megabytes: 10) }),
  Row(
    "writes under a rule over a root of 1 GB / of 10 MB", goal: "0.83", unit: "writes/s", in: .realtime,
    measure: { try await writesUnderRulesOverRoot($0, megabytes: 1024) },
    reference: { try await writesUnderRulesOverRoot($0, megabytes: 10) }),
  Row(
    "writes under a rule over a root of 10 GB / of 10 MB", goal: "0.83", unit: "writes/s", in: .large,
    measure: { try await writesUnderRulesOverRoot($0, megabytes: 10_240) },
    reference: { try await writesUnderRulesOverRoot($0, megabytes: 10) }),
  Row(
    "writes to a database of 10 GB / of 10 MB", goal: "0.83", unit: "writes/s", in: .large,
    measure: { try await writesToDatabase($0, megabytes: 10_240) },
    reference: { try await writesToDatabase($0, megabytes: 10) }),
]
