// The memory of results that a client has not read: it is reserved before the results are read from the store, and bounded.

import Access
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Memory of results", .timeLimit(.minutes(5))) struct ResultMemoryTests {
  /// Grants reservations while it is open, and records the held bytes.
  private final class RecordingMemory: ResultMemory {
    struct State {
      var isOpen = true
      var grantsImmediately = true
      var held = 0
      var highest = 0
      var reservations: [Int] = []
      var waiting = 0
    }

    let state = Guarded(State())

    func reserve(_ bytes: Int) async throws {
      state.withLock { $0.waiting += 1 }
      while !state.withLock({ $0.isOpen }) { try await Task.sleep(nanoseconds: 1_000_000) }
      state.withLock { state in
        state.waiting -= 1
        state.reservations.append(bytes)
        state.held += bytes
        state.highest = max(state.highest, state.held)
      }
    }

    func reserveNow(_ bytes: Int) -> Bool {
      state.withLock { state in
        guard state.isOpen, state.grantsImmediately else { return false }
        state.reservations.append(bytes)
        state.held += bytes
        state.highest = max(state.highest, state.held)
        return true
      }
    }

    func resize(from old: Int, to new: Int) {
      state.withLock { state in
        state.held += new - old
        state.highest = max(state.highest, state.held)
      }
    }
  }

  private struct CountedOutput: WatchOutput {
    let client: WatchClient
    let counted: RecordingMemory

    var memory: (any ResultMemory)? { counted }

    func send(_ responses: [WatchResponse]) async throws { try await client.send(responses) }

    func fail(_ error: FirestoreError) async { await client.fail(error) }
  }

  private static let documentBytes = 20_000

  private func fill(_ fixture: EngineFixture, count: Int) async throws {
    for index in 0..<count {
      try await fixture.set(
        ResourcePath(["c", "d\(100 + index)"]),
        ["t": .string(String(repeating: "x", count: Self.documentBytes))])
    }
  }

  private let everything = StructuredQuery(from: [.init("c")])

  @Test("A query reserves memory before it reads a page, begins with a small page, and releases each page")
  func query() async throws {
    let fixture = try EngineFixture()
    try await fill(fixture, count: 100)
    let memory = RecordingMemory()
    memory.state.withLock { $0.isOpen = false }
    let pages = Collected<Int>()
    let query = Query(parent: fixture.root, everything)
    async let run: Void = fixture.engine.runQuery(query, as: .administrator, memory: memory) { page in
      let bytes = page.documents.reduce(0) { $0 + $1.encoded.count }
      #expect(memory.state.withLock { $0.held } >= 2 * bytes)
      pages.append(page.documents.count)
    }
    try await eventually("the query waits") { memory.state.withLock { $0.waiting } == 1 }
    #expect(pages.all.isEmpty)
    memory.state.withLock { $0.isOpen = true }
    try await run
    #expect(pages.all.first == 4 && pages.all.reduce(0, +) == 100, "\(pages.all)")
    #expect(pages.all.dropLast() == pages.all.dropLast().sorted()[...], "\(pages.all)")
    #expect(memory.state.withLock { $0.held } == 0)
    // The reservation covers the page and one document of the maximum size, each stored and encoded for the response.
    #expect(
      memory.state.withLock { $0.reservations.first } == 2 * (EngineLimits.minimumPageBytes + 1_048_576))
  }

  @Test("A Listen stream whose client does not read reserves and holds memory for one small page only")
  func listen() async throws {
    let fixture = try EngineFixture()
    try await fill(fixture, count: 100)
    let memory = RecordingMemory()
    let client = WatchClient()
    let stream = try await fixture.watch(CountedOutput(client: client, counted: memory))
    client.block(true)
    stream.addTarget(WatchTarget(id: 1, fixture.selection(everything)))
    try await eventually("the first page is read") {
      memory.state.withLock { !$0.reservations.isEmpty && $0.held > 0 && $0.held < 400_000 }
    }
    #expect(memory.state.withLock { $0.held } >= 2 * 4 * Self.documentBytes)
    #expect(memory.state.withLock { $0.reservations.count } == 1)
    client.block(false)
    try await eventually("the target is loaded") { client.view.current == [1] }
    #expect(client.view.documents[1]?.count == 100)
    #expect(client.view.violations.isEmpty)
    try await eventually("the memory is released") { memory.state.withLock { $0.held } == 0 }
    stream.close()
  }

  @Test("A Listen stream whose wait for memory fails ends with RESOURCE_EXHAUSTED")
  func exhausted() async throws {
    struct ExhaustedMemory: ResultMemory {
      func reserve(_ bytes: Int) async throws { throw ResultMemoryExhausted("no memory") }
      func reserveNow(_ bytes: Int) -> Bool { false }
      func resize(from old: Int, to new: Int) {}
    }
    struct ExhaustedOutput: WatchOutput {
      let client: WatchClient
      var memory: (any ResultMemory)? { ExhaustedMemory() }
      func send(_ responses: [WatchResponse]) async throws { try await client.send(responses) }
      func fail(_ error: FirestoreError) async { await client.fail(error) }
    }
    let fixture = try EngineFixture()
    try await fill(fixture, count: 1)
    let client = WatchClient()
    let stream = try await fixture.watch(ExhaustedOutput(client: client))
    stream.addTarget(WatchTarget(id: 1, fixture.selection(everything)))
    try await eventually("the stream ends") { client.view.failure != nil }
    #expect(client.view.failure?.code == .resourceExhausted)
    await #expect(throws: ResultMemoryExhausted.self) {
      try await fixture.engine.runQuery(
        Query(parent: fixture.root, everything), as: .administrator, memory: ExhaustedMemory()
      ) { _ in }
    }
  }

  @Test("If a stream gets no memory for buffered changes, it resets its targets, and the client converges")
  func bufferedChangesBecomeReset() async throws {
    let fixture = try EngineFixture()
    let memory = RecordingMemory()
    memory.state.withLock { $0.grantsImmediately = false }
    let client = WatchClient()
    let stream = try await fixture.watch(CountedOutput(client: client, counted: memory))
    stream.addTarget(WatchTarget(id: 1, fixture.selection(everything)))
    try await eventually("the target is loaded") { client.view.current == [1] }
    client.block(true)
    // The output blocks on the first change. The later changes exceed the bytes that the stream buffers without reserved
    // memory.
    try await fill(fixture, count: 20)
    #expect(stream.bufferedBytes <= EngineLimits.watchBufferAllowance)
    client.block(false)
    try await eventually("the client has all documents") { client.view.documents[1]?.count == 20 }
    #expect(client.view.resets >= 1)
    #expect(client.view.violations.isEmpty)
    #expect(client.view.failure == nil)
    try await eventually("the memory is released") { memory.state.withLock { $0.held } == 0 }
    stream.close()
  }
}
