// The emulators' hub: the port on which tools and test libraries ask where the emulators are.

import NIOCore
import NIOHTTP1
import RealtimeModel

/// What the hub tells.
public struct EmulatorHub: PlainHTTPService {
  /// An emulator that runs.
  public struct Emulator: Sendable {
    /// Its name among the emulators, such as `firestore`.
    public var name: String
    /// The address that it listens on.
    public var host: String
    /// Its port.
    public var port: Int

    /// Names an emulator.
    public init(name: String, host: String, port: Int) {
      self.name = name
      self.host = host
      self.port = port
    }
  }

  private let emulators: [Emulator]
  private let version: String
  private let process: Int32

  /// Makes a hub for emulators that run already; it adds itself to them.
  public init(_ emulators: [Emulator], version: String, process: Int32) {
    self.emulators = emulators
    self.version = version
    self.process = process
  }

  /// What the hub's port speaks.
  public func protocols(_ limits: PortLimits = PortLimits()) -> PortProtocols {
    PortProtocols(http1: http1(limits))
  }

  func refusal(of head: HTTPRequestHead) -> HTTPAnswer? { nil }

  func serve(_ request: HTTPRequest, _ responder: HTTPResponder, on connection: FirestoreHTTPConnection) {
    responder.answer(answer(request, on: responder.localAddress))
  }

  private func answer(_ request: HTTPRequest, on address: SocketAddress?) -> HTTPAnswer {
    let hub = Emulator(name: "hub", host: address?.ipAddress ?? "127.0.0.1", port: address?.port ?? 0)
    switch (request.head.method, request.target.rawPath) {
    case (.OPTIONS, _): return HTTPAnswer(status: .ok)
    case (.GET, "/"): return .json(root(hub))
    case (.GET, "/emulators"): return .json(list(emulators + [hub]))
    case (.PUT, "/functions/disableBackgroundTriggers"): return .json(["enabled": .bool(false)])
    case (.PUT, "/functions/enableBackgroundTriggers"): return .json(["enabled": .bool(true)])
    case (.POST, "/_admin/export"): return export(request)
    default: return .unknown
    }
  }

  private func root(_ hub: Emulator) -> JSONObject {
    let origins = ["http://\(Self.authority(hub.host)):\(hub.port)", "http://localhost:\(hub.port)"]
    return [
      "version": .string(version), "origins": .array(origins.map { .string($0) }),
      "pid": .int(Int64(process)),
      "host": .string(hub.host), "port": .int(Int64(hub.port)),
    ]
  }

  private func list(_ emulators: [Emulator]) -> JSONObject {
    var object = JSONObject()
    for emulator in emulators {
      let address: JSONObject = [
        "address": .string(emulator.host), "family": .string(emulator.host.contains(":") ? "IPv6" : "IPv4"),
        "port": .int(Int64(emulator.port)),
      ]
      object[emulator.name] = .object([
        "name": .string(emulator.name), "host": .string(emulator.host), "port": .int(Int64(emulator.port)),
        "listen": .array([.object(address)]), "pid": .int(Int64(process)),
      ])
    }
    return object
  }

  /// A page in a browser may not have data written to a disk.
  private func export(_ request: HTTPRequest) -> HTTPAnswer {
    guard request.head.headers.first(name: "origin") == nil else {
      return .json(["message": .string("Export cannot be triggered by external callers.")], .forbidden)
    }
    let message =
      "The hub does not export yet. Ask Cloud Firestore itself: POST /emulator/v1/projects/PROJECT:export on its port."
    return .json(["message": .string(message)], .notImplemented)
  }

  private static func authority(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
}

extension HTTPAnswer {
  /// An object.
  fileprivate static func json(_ object: JSONObject, _ status: HTTPResponseStatus = .ok) -> HTTPAnswer {
    .json(status, ByteBuffer(bytes: JSONValue.object(object).json()))
  }
}
