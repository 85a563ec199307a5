// An echo port is a listening port with a small echo service. It tests the gRPC transport without a database.

import FirestoreEndpoints
import GRPCFraming
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Ports

/// The events of the service's calls. Tests wait for them.
enum EchoEvent: Sendable, Equatable {
  case started(String)
  case cancelled(String)
  case sent(Int)
  case ended(String)
}

struct EchoPort {
  static let service = "test.Echo"

  let port: ListeningPort
  let events: Mailbox<EchoEvent>

  static func start(
    limits: PortLimits = PortLimits(), tls: PortTLS? = nil
  ) async throws -> EchoPort {
    let group = MultiThreadedEventLoopGroup.singleton
    let events = Mailbox<EchoEvent>(group.next())
    let log = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let methods = GRPCMethods(
      service: service,
      [
        "Echo": .unary { _, message in
          var buffer = ByteBuffer()
          buffer.writeGRPCMessage(bytes: message.readableBytesView)
          return buffer
        },
        "Read": .reading(page: 0) { _, _ in
          events.put(.started("Read"))
          var buffer = ByteBuffer()
          buffer.writeGRPCMessage(bytes: [])
          return buffer
        },
        // Returns one mebibyte.
        "Large": .unary { _, _ in
          var buffer = ByteBuffer()
          buffer.writeGRPCMessage(bytes: [UInt8](repeating: 1, count: 1 << 20))
          return buffer
        },
        "Fail": .unary { _, _ in throw GRPCStatus(.failedPrecondition, "Käse 100%") },
        "Crash": .unary { _, _ in throw DeadlinePassed() },
        "Hang": .unary { _, _ in
          events.put(.started("Hang"))
          do {
            // The sleep is longer than any test waits, so only cancellation ends the call.
            try await Task.sleep(for: .seconds(3600))
          } catch {
            events.put(.cancelled("Hang"))
            throw error
          }
          return ByteBuffer()
        },
        // Sends messages of 16 KiB without end.
        "Flood": .serverStreaming { _, _, responder in
          var buffer = ByteBuffer()
          buffer.writeGRPCMessage(bytes: [UInt8](repeating: 1, count: 16 << 10))
          var count = 0
          do {
            while true {
              try await responder.send(buffer)
              count += 1
              events.put(.sent(count))
            }
          } catch {
            events.put(.cancelled("Flood"))
            throw error
          }
        },
        "Converse": .duplex { _, responder in EchoCall(responder, events) },
      ],
      oversized: { bytes in GRPCStatus(.invalidArgument, bytes.map { "\($0) bytes" } ?? "Too many bytes") })
    let http = FirestoreHTTPService(rest: FirestoreREST(methods: methods, log: log), handlers: [])
    let protocols = PortProtocols(
      http1: http.http1(limits),
      http2: PortProtocols.grpcStreams(methods, limits: limits, log: log, fallback: http.http2(limits)))
    let port = try await ListeningPort.bind(
      host: "127.0.0.1", port: 0, protocols: protocols, tls: tls, limits: limits, group: group, log: log)
    return EchoPort(port: port, events: events)
  }

  func stop() async {
    await port.drain(grace: .seconds(2))
  }

  func connect(window: Int = 1 << 20) async throws -> GRPCTestClient {
    try await GRPCTestClient.connect(port: port.port, window: window)
  }
}

/// Returns every message to the client until it half-closes.
private final class EchoCall: GRPCCall {
  private let responder: any CallResponder
  private let events: Mailbox<EchoEvent>

  init(_ responder: any CallResponder, _ events: Mailbox<EchoEvent>) {
    self.responder = responder
    self.events = events
  }

  func receive(_ message: ByteBuffer) {
    var buffer = ByteBuffer()
    buffer.writeGRPCMessage(bytes: message.readableBytesView)
    let framed = buffer
    responder.start { [responder] in try? await responder.send(framed) }
  }

  func receive(rejection: GRPCStatus) { responder.finish(rejection) }

  func halfClose() {
    responder.start { [responder] in responder.finish(.ok) }
  }

  func drain() { responder.finish(GRPCStatus(.unavailable, "draining")) }

  func end() { events.put(.ended("Converse")) }
}
