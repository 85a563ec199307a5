// Tests that large messages are encoded off the event loop, and that a connection's outputs keep their order.

import Access
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints
@testable import RealtimeEngine

@Suite("Large pushes of the Realtime Database", .timeLimit(.minutes(10)))
struct LargePushTests {
  /// The size of a large value in bytes. All writes of a test together stay below the size at which the server coalesces
  /// queued pushes (combines several into one). So even a slow test client receives each push.
  private static let large = 2_000

  /// Receives outputs on its event loop, and requires that pushes above 100 bytes are encoded off the loop.
  private final class Receiver: OutputReceiver {
    let received: Mailbox<String>
    let eventLoop: any EventLoop
    let encodedOnLoop = NIOLockedValueBox(0)

    init(_ received: Mailbox<String>, _ eventLoop: any EventLoop) {
      self.received = received
      self.eventLoop = eventLoop
    }

    let isBackpressured = false
    let maximumQueuedBytes = Int.max
    func disconnectForOverflow() {}

    private func name(_ output: RealtimeOutput) -> String {
      if case .push(let push) = output { push.path.description } else { "?" }
    }

    func receive(_ outputs: [RealtimeOutput]) {
      eventLoop.preconditionInEventLoop()
      for output in outputs { received.put(name(output)) }
    }

    func encoding(of output: RealtimeOutput) -> (@Sendable () -> ByteBuffer?)? {
      guard case .push(let push) = output, push.estimatedSize > 100 else { return nil }
      let (loop, onLoop) = (eventLoop, encodedOnLoop)
      return {
        if loop.inEventLoop { onLoop.withLockedValue { $0 += 1 } }
        return ByteBuffer(string: push.path.description)
      }
    }

    func receive(_ output: RealtimeOutput, encoded: ByteBuffer?) {
      eventLoop.preconditionInEventLoop()
      #expect(encoded.map { String(buffer: $0) } == name(output))
      received.put(name(output))
    }
  }

  private final class BoundReceiver: Sendable {
    let receiver: NIOLoopBound<Receiver>
    let sink: LoopSink
    init(_ receiver: Receiver, _ group: LoopSinkGroup) {
      self.receiver = NIOLoopBound(receiver, eventLoop: group.eventLoop)
      sink = LoopSink(group, receiver)
    }
  }

  @Test(
    "outputs keep their order for any mix of sizes, and large outputs are encoded off the event loop")
  func order() async throws {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let group = LoopSinkGroup(loop)
    let received = Mailbox<String>(loop)
    let boundReceiver = try await loop.submit { BoundReceiver(Receiver(received, loop), group) }.get()
    var random = SystemRandomNumberGenerator()
    var next = 0
    while next < 2000 {
      let outputs = (0..<Int.random(in: 1...9, using: &random)).map { offset in
        RealtimeOutput.push(
          RealtimePush(
            Path(keys: [ChildKey("\(next + offset)")]),
            .set(.leaf(.string(String(repeating: "x", count: Bool.random(using: &random) ? 200 : 1))))))
      }
      next += outputs.count
      group.deliver([RealtimeDelivery(sink: boundReceiver.sink, outputs: outputs)])
    }
    for index in 0..<next { #expect(try await received.next() == "\(index)") }
    let onLoop = try await loop.submit { boundReceiver.receiver.value.encodedOnLoop.withLockedValue { $0 } }
      .get()
    #expect(onLoop == 0)
    // A closed connection receives nothing, not even a push whose encoding had already begun.
    let late = RealtimePush("late", .set(.leaf(.string(String(repeating: "x", count: 1000)))))
    try await loop.submit {
      boundReceiver.sink.receive([.push(late), .push(RealtimePush("later", .set(.empty)))])
      boundReceiver.sink.detach()
    }.get()
    // Pushes are encoded one after the other. When this later push for another connection arrives, the first
    // one has been encoded.
    let other = Mailbox<String>(loop)
    let second = try await loop.submit { BoundReceiver(Receiver(other, loop), group) }.get()
    group.deliver([RealtimeDelivery(sink: second.sink, outputs: [.push(late)])])
    #expect(try await other.next() == "late")
    #expect(received.isEmpty)
  }

  @Test("a socket receives large and small changes in the order of the writes, and then its responses")
  func socket() async throws {
    var limits = RealtimeEndpointLimits()
    limits.loopEncodingBytes = Self.large / 2
    try await RealtimeTestServer.run(limits: limits) { server in
      let writer = try await RawSocket.open(server)
      let reader = try await RawSocket.open(server)
      let text = String(repeating: "x", count: Self.large)
      for socket in [writer, reader] {
        try await socket.play(
          [#"{"r":0,"a":"q","b":{"p":"/a","h":""}}"#],
          expect: [#"{"r":0,"b":{"s":"ok","d":{}}}"#])
      }
      for number in 1...60 {
        try await writer.send(
          #"{"r":\#(number),"a":"p","b":{"p":"/a","d":"\#(number)\#(number % 3 == 0 ? text : "")"}}"#)
      }
      for number in 1...60 {
        let push = #"{"a":"d","b":{"p":"a","d":"\#(number)\#(number % 3 == 0 ? text : "")"}}"#
        #expect(try await writer.next() == push)
        #expect(try await writer.next() == #"{"r":\#(number),"b":{"s":"ok","d":""}}"#)
        #expect(try await reader.next() == push)
      }
      // The response to a large read keeps its place among the responses to small requests.
      try await reader.play(
        [
          #"{"r":1,"a":"g","b":{"p":"/b","q":{}}}"#, #"{"r":2,"a":"g","b":{"p":"/a","q":{}}}"#,
          #"{"r":3,"a":"s","b":{}}"#, #"{"r":4,"a":"g","b":{"p":"/b","q":{}}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":null}}"#, #"{"r":2,"b":{"s":"ok","d":"60\#(text)"}}"#,
          #"{"r":3,"b":{"s":"ok","d":""}}"#, #"{"r":4,"b":{"s":"ok","d":null}}"#,
        ])
    }
  }

  @Test("event streams receive large and small changes in the order of the writes")
  func events() async throws {
    var limits = RealtimeEndpointLimits()
    limits.loopEncodingBytes = Self.large / 2
    try await RealtimeTestServer.run(limits: limits) { server in
      let client = try await HTTP2Client.open(server.port.port)
      let events = try await client.request(.GET, "/a.json", headers: ["accept": "text/event-stream"])
      #expect(try await events.next() == "200")
      _ = try await events.next()
      let database = try await server.engine.database("default-ns")
      let text = String(repeating: "x", count: Self.large)
      let values = (1...60).map { "\($0)\($0 % 3 == 0 ? text : "")" }
      for value in values { _ = try await database.set("a", to: .leaf(.string(value)), as: .nobody) }
      var seen = ""
      let expected = values.map { "event: put\ndata: {\"path\":\"/\",\"data\":\"\($0)\"}\n\n" }.joined()
      while seen.utf8.count < expected.utf8.count { seen += try await events.next() }
      #expect(seen == expected)
      await client.close()
    }
  }
}
