// Tests errors of HTTP/2 streams and connections: a stream error ends one stream, a connection error ends
// the connection with a reason.

import FirestoreProtobuf
import GRPCFraming
import NIOCore
import NIOHPACK
import SwiftProtobuf
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Errors of streams and connections", .timeLimit(.minutes(10)))
struct StreamErrorTests {
  private typealias Code = FrameConnection.Code

  private func withConnection(
    _ limits: PortLimits = PortLimits(), acknowledgesSettings: Bool = true,
    _ body: (EchoPort, FrameConnection) async throws -> Void
  ) async throws {
    let echo = try await EchoPort.start(limits: limits)
    let client = try await FrameConnection.open(
      port: echo.port.port, acknowledgesSettings: acknowledgesSettings)
    do {
      try await body(echo, client)
    } catch {
      await client.close()
      await echo.stop()
      throw error
    }
    await client.close()
    await echo.stop()
  }

  /// Begins a bidirectional stream and waits for its response.
  private func openDuplexStream(_ client: FrameConnection, stream: Int) async throws {
    try await client.request(stream, FrameConnection.callFields("Converse"), [1], end: false)
    _ = try await client.frames { if case .data(stream, _, _) = $0 { true } else { false } }
  }

  /// Expects that the stream continues.
  private func expectOpenStream(_ client: FrameConnection, stream: Int) async throws {
    try await client.send(FrameConnection.messageFrame(stream, [7], end: false))
    let frames = try await client.frames { if case .data(stream, _, _) = $0 { true } else { false } }
    guard case .data(_, let bytes, false)? = frames.last else {
      Issue.record("the stream ended: \(frames)")
      return
    }
    #expect(Array(bytes.readableBytesView) == [0, 0, 0, 0, 1, 7])
  }

  enum Malformed: CaseIterable {
    case upperCase, connection, encoding, lateMethod, noPath, tooMuchBody, tooLittleBody, noEnd

    var fields: [(String, String)] {
      let call = FrameConnection.callFields("Echo")
      switch self {
      case .upperCase: return call + [("Upper", "x")]
      case .connection: return call + [("connection", "close")]
      case .encoding: return call.filter { $0.0 != "te" } + [("te", "gzip")]
      case .lateMethod: return Array(call.dropFirst() + call.prefix(1))
      case .noPath: return call.filter { $0.0 != ":path" }
      case .tooMuchBody: return call + [("content-length", "3")]
      case .tooLittleBody: return call + [("content-length", "300")]
      case .noEnd: return call
      }
    }
  }

  @Test(
    "A malformed request is reset, and the other calls of its connection continue",
    arguments: Malformed.allCases)
  func malformed(_ kind: Malformed) async throws {
    try await withConnection { _, client in
      try await openDuplexStream(client, stream: 1)
      if kind == .noEnd {
        // A second header block without END_STREAM is not a trailer block.
        let heads = try client.headersFrame(3, kind.fields) + client.headersFrame(3, [("x", "y")])
        try await client.send(heads + FrameConnection.messageFrame(3, [1], end: true))
      } else {
        try await client.request(3, kind.fields, [1])
      }
      let frames = try await client.frames { if case .reset(3, _) = $0 { true } else { false } }
      #expect(frames.last == .reset(stream: 3, code: Code.protocolError))
      try await expectOpenStream(client, stream: 1)
      // Frames in flight after the reset are dropped, and the next call is served.
      try await client.send(FrameConnection.messageFrame(3, [2], end: true))
      try await client.request(5, FrameConnection.callFields("Echo"), [1])
      #expect(try await client.status(of: 5) == 0)
    }
  }

  enum Priority: CaseIterable {
    case tooShort, tooLong, ofItself, ofItselfWhileIdle, inHead, inPaddedHead

    /// The beginning of a call on stream 3, with a priority that would be an error in RFC 7540: a wrong length, or
    /// a stream that depends on itself.
    func call(_ head: [UInt8]) -> [UInt8] {
      let block = Array(head.dropFirst(9))
      switch self {
      case .tooShort: return head + FrameConnection.frame(2, 0, 3, [1, 2, 3])
      case .tooLong: return head + FrameConnection.frame(2, 0, 3, [0, 0, 0, 0, 1, 1])
      case .ofItself: return head + FrameConnection.frame(2, 0, 3, [0, 0, 0, 3, 1])
      case .ofItselfWhileIdle: return FrameConnection.frame(2, 0, 3, [0, 0, 0, 3, 1]) + head
      case .inHead: return FrameConnection.frame(1, 0x24, 3, [0x80, 0, 0, 3, 1] + block)
      case .inPaddedHead: return FrameConnection.frame(1, 0x2c, 3, [2, 0, 0, 0, 3, 1] + block + [0, 0])
      }
    }
  }

  @Test("Priorities have no effect, even if they are invalid", arguments: Priority.allCases)
  func priorities(_ kind: Priority) async throws {
    try await withConnection { _, client in
      try await openDuplexStream(client, stream: 1)
      let head = kind.call(try client.headersFrame(3, FrameConnection.callFields("Echo")))
      try await client.send(head + FrameConnection.messageFrame(3, [1], end: true))
      #expect(try await client.status(of: 3) == 0)
      try await expectOpenStream(client, stream: 1)
    }
  }

  @Test("A body after its stream's reset is dropped, and the connection's window is restored")
  func bodyAfterReset() async throws {
    try await withConnection { _, client in
      try await openDuplexStream(client, stream: 1)
      let head = try client.headersFrame(3, FrameConnection.callFields("Converse"))
      let (chunkCount, bytes) = (160, 16 << 10)
      let before = client.windowUpdateBytes
      try await client.send(head + FrameConnection.frame(3, 0, 3, [0, 0, 0, 8]))
      // The body is twice the window: without window updates the connection would stall.
      let chunk = FrameConnection.frame(0, 0, 3, [UInt8](repeating: 0, count: bytes))
      for _ in 0..<chunkCount { try await client.send(chunk) }
      try await expectOpenStream(client, stream: 1)
      let restored = client.windowUpdateBytes - before
      #expect(restored <= chunkCount * bytes && restored > chunkCount * bytes - (64 << 10), "\(restored)")
      try await client.request(5, FrameConnection.callFields("Echo"), [1])
      #expect(try await client.status(of: 5) == 0)
    }
  }

  @Test("Many malformed requests end their connection with a reason")
  func tooManyErrors() async throws {
    var limits = PortLimits()
    limits.http2.maximumStreamErrors = 300
    try await withConnection(limits) { _, client in
      let fields = FrameConnection.callFields("Echo", [("connection", "close")])
      // 250 stream errors are below this test's limit of 300. The connection must not end, although NIOHTTP2's default
      // limit on such errors, `maximumConnectionGlitches`, is lower.
      for index in 0..<250 { try await client.request(1 + 2 * index, fields) }
      try await client.request(501, FrameConnection.callFields("Echo"), [1])
      #expect(try await client.status(of: 501) == 0)
      do {
        for index in 0..<100 { try await client.request(503 + 2 * index, fields) }
      } catch {}  // The connection may close while the requests are still being written.
      let frames = try await client.frames { _ in false }
      let reasons = frames.filter { if case .goAway = $0 { true } else { false } }
      #expect(reasons == [.goAway(last: 0x7fff_ffff, code: Code.enhanceYourCalm)])
    }
  }

  @Test("A stream above the limit is refused, and the others continue", arguments: [true, false])
  func tooManyStreams(acknowledgesSettings: Bool) async throws {
    var limits = PortLimits()
    limits.http2.maximumConcurrentStreams = 120
    try await withConnection(limits, acknowledgesSettings: acknowledgesSettings) { _, client in
      // The server enforces the limit even before the client acknowledges the settings that contain it.
      for index in 0..<120 {
        try await client.request(1 + 2 * index, FrameConnection.callFields("Converse"), [1], end: false)
      }
      var responses = 0
      while responses < 120 { if case .data = try await client.next() { responses += 1 } }
      for stream in [241, 243] {
        try await client.request(stream, FrameConnection.callFields("Converse"), [1], end: false)
        let frames = try await client.frames { if case .reset = $0 { true } else { false } }
        #expect(frames.last == .reset(stream: stream, code: Code.refusedStream))
        try await client.send(FrameConnection.messageFrame(stream, [2], end: true))
      }
      try await expectOpenStream(client, stream: 1)
      try await expectOpenStream(client, stream: 239)
      // The end of a stream frees capacity for another stream.
      try await client.send(FrameConnection.frame(0, 1, 1))
      #expect(try await client.status(of: 1) == 0)
      try await client.request(245, FrameConnection.callFields("Echo"), [1])
      #expect(try await client.status(of: 245) == 0)
    }
  }

  @Test("The server's SETTINGS frame contains the limits on streams and on headers")
  func settings() async throws {
    try await withConnection(acknowledgesSettings: false) { _, client in
      guard case .settings(let settings) = try await client.next() else { throw DeadlinePassed() }
      #expect(settings[3] == 1_000)
      #expect(settings[6] == 64 << 10)
    }
  }

  /// HEADERS with `bytes` additional bytes of fields, in a frame and its continuations.
  private func largeHead(
    _ client: FrameConnection, _ stream: Int, _ fields: [(String, String)], _ bytes: Int, end: Bool
  ) throws -> [UInt8] {
    let more = (0..<bytes / 1_000).map { ("x-\($0)", String(repeating: "{", count: 1_000)) }
    var rest = try client.headersFrame(stream, fields + more).dropFirst(9)
    var frames: [UInt8] = []
    while frames.isEmpty || !rest.isEmpty {
      let chunk = Array(rest.prefix(16 << 10))
      rest = rest.dropFirst(chunk.count)
      let flags: UInt8 = (rest.isEmpty ? 4 : 0) | (frames.isEmpty && end ? 1 : 0)
      frames += FrameConnection.frame(frames.isEmpty ? 1 : 9, flags, stream, chunk)
    }
    return frames
  }

  @Test(
    "Headers above the limit end only their stream, and the HPACK tables of client and server stay equal",
    arguments: [70_000, 120_000])
  func largeHeaders(bytes: Int) async throws {
    try await withConnection { _, client in
      try await openDuplexStream(client, stream: 1)
      let call = FrameConnection.callFields("Echo", [("x-kept", "in the table")])
      try await client.send(try largeHead(client, 3, call, bytes, end: false))
      #expect(try await client.status(of: 3) == 8)
      // Frames in flight are dropped.
      try await client.send(FrameConnection.messageFrame(3, [2], end: true))
      let get = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "localhost")]
      for (stream, end) in [(5, true), (7, false)] {
        try await client.send(try largeHead(client, stream, get, bytes, end: end))
        let frames = try await client.frames { if case .data(stream, _, true) = $0 { true } else { false } }
        let status = frames.compactMap { frame -> String? in
          if case .headers(stream, let fields, _) = frame { fields.first(name: ":status") } else { nil }
        }
        #expect(status == ["431"])
        guard case .data(_, let text, _)? = frames.last else { continue }
        #expect(String(buffer: text) == "The request's headers take more than 65536 bytes.\n")
      }
      // The server resets the incomplete request after its response.
      let frames = try await client.frames { if case .reset(7, _) = $0 { true } else { false } }
      #expect(frames.last == .reset(stream: 7, code: Code.noError))
      try await expectOpenStream(client, stream: 1)
      try await client.request(9, call, [1])
      #expect(try await client.status(of: 9) == 0)
    }
  }

  @Test(
    "Headers far above the limit, as sent or after HPACK expansion, or above the memory budget end their connection"
  )
  func hugeHeaders() async throws {
    try await withConnection { _, client in
      try await client.send(try largeHead(client, 1, FrameConnection.callFields("Echo"), 400_000, end: true))
      let frames = try await client.frames { _ in false }
      #expect(frames.contains { if case .goAway = $0 { true } else { false } } && frames.last == .closed)
    }
    try await withConnection { _, client in
      // HPACK stores a field of 3,000 bytes in its table. Each of 1,000 references to it takes one byte and
      // expands to 3,000.
      let value = String(repeating: "{", count: 3_000)
      let head = try client.headersFrame(1, FrameConnection.callFields("Echo", [("x-table", value)]))
      let block = Array(head.dropFirst(9)) + [UInt8](repeating: 0x80 | 62, count: 1_000)
      try await client.send(FrameConnection.frame(1, 5, 1, block))
      let frames = try await client.frames { _ in false }
      #expect(frames.contains { if case .goAway = $0 { true } else { false } } && frames.last == .closed)
    }
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: 32 << 10)
    limits.allowanceBytes = 64 << 10
    // The headers are incomplete: the last frames or the last byte are missing. 60,000 bytes are within a
    // connection's free allowance for requests, but headers have a smaller allowance of one frame and exceed the
    // memory budget.
    for (bytes, missing) in [(200_000, 40_000), (60_000, 1)] {
      try await withConnection(limits) { _, client in
        let head = try largeHead(client, 1, FrameConnection.callFields("Echo"), bytes, end: true)
        try await client.send(Array(head.dropLast(missing)))
        let frames = try await client.frames { _ in false }
        #expect(frames.contains { if case .goAway(_, Code.enhanceYourCalm) = $0 { true } else { false } })
      }
    }
  }

  @Test("A long error message is truncated to the maximum size of headers, and ends only its call")
  func longMessages() async throws {
    try await FirestoreTestServer.with { client in
      let listen = try await ListenClient(client)
      try await listen.add(2, documents: ["c/d"])
      _ = try await listen.snapshot()
      for letter in ["x", "{", "\u{E9}", "e\u{301}\u{302}"] {
        let long = String(repeating: letter, count: 30_000)
        let get = try await client.open("GetDocument")
        // The response may arrive before the request is sent completely.
        try? await get.send(Google_Firestore_V1_GetDocumentRequest.with { $0.name = long }, endStream: true)
        let rejected = try await get.status()
        #expect(rejected.code == .invalidArgument, "\(rejected)")
        #expect(rejected.message.hasPrefix("Document name \"\(letter)\(letter)"))
        // This error repeats the complete database name.
        let write = try await client.open("Write")
        for database in ["projects/\(long)/databases/d", "other"] {
          try? await write.send(Google_Firestore_V1_WriteRequest.with { $0.database = database })
        }
        let ended = try await write.status()
        #expect(ended.code == .invalidArgument, "\(ended)")
        #expect(ended.message.hasPrefix("A Write stream serves one database, here projects/\(letter)"))
      }
      try await client.commit([.set("c/d", ["n": .int(1)])])
      let snapshot = try await listen.snapshot { $0.targets[2] == ["c/d": 1] }
      #expect(snapshot.targets == [2: ["c/d": 1]])
    }
  }

  @Test("A response does not repeat request headers that are too long, and the connection continues")
  func longOrigins() async throws {
    try await withConnection { _, client in
      try await openDuplexStream(client, stream: 1)
      let options = [
        (":method", "OPTIONS"), (":path", "/"), (":scheme", "http"), (":authority", "localhost"),
      ]
      let headerName = "access-control-request-headers"
      for (stream, origin, requested) in [(3, 20_000, 9), (5, 2_048, 20_000), (7, 2_048, 2_048), (9, 9, 9)] {
        let fields =
          options + [("origin", String(repeating: "{", count: origin))]
          + [(headerName, String(repeating: "{", count: requested))]
        try await client.send(try largeHead(client, stream, fields, 0, end: true))
        let frames = try await client.frames { if case .headers(stream, _, _) = $0 { true } else { false } }
        guard case .headers(_, let response, _)? = frames.last else {
          Issue.record("the connection has ended")
          continue
        }
        #expect(response.first(name: ":status") == "200")
        let isShort = origin <= 2_048
        #expect(response.contains(name: "access-control-allow-origin") == isShort)
        #expect(response.contains(name: "access-control-allow-headers") == (isShort && requested <= 2_048))
      }
      try await expectOpenStream(client, stream: 1)
    }
  }

  @Test("A client that keeps opening streams above the limit loses its connection, with a reason")
  func tooManyRefusedStreams() async throws {
    var limits = PortLimits()
    limits.http2.maximumConcurrentStreams = 1
    limits.http2.maximumRefusedStreams = 100
    try await withConnection(limits) { _, client in
      do {
        for index in 0..<200 {
          try await client.request(1 + 2 * index, FrameConnection.callFields("Converse"), [1], end: false)
        }
      } catch {}  // The connection may close while the requests are still being written.
      let frames = try await client.frames { _ in false }
      #expect(frames.contains { if case .goAway(_, Code.enhanceYourCalm) = $0 { true } else { false } })
    }
  }

  @Test("Connection errors end the connection with a reason")
  func connectionErrors() async throws {
    for bytes in [
      FrameConnection.frame(0, 0, 9, [1]), FrameConnection.frame(0, 0, 0, [1]),
      FrameConnection.frame(8, 0, 0, [0, 0, 0, 0]), FrameConnection.frame(4, 1, 0),
      // Trailers after the stream's reset, with a field name that is in neither HPACK table.
      FrameConnection.frame(3, 0, 1, [0, 0, 0, 8]) + FrameConnection.frame(1, 5, 1, [0, 1, 0x78, 1, 0x79]),
    ] {
      try await withConnection { _, client in
        try await openDuplexStream(client, stream: 1)
        try await client.send(bytes)
        let frames = try await client.frames { _ in false }
        #expect(
          frames == [.goAway(last: FrameConnection.largestStreamID, code: Code.protocolError), .closed],
          "\(bytes)")
      }
    }
  }
}
