// The emulator hub: the port at which tools and test libraries look up the addresses of the emulators.

import FirestoreEndpoints
import JSON
import NIOCore
import NIOHTTP1
package import Ports
import RealtimeModel

/// Serves the emulator hub.
package struct EmulatorHub: GoogleHTTPService {
  /// A running emulator.
  package struct Emulator: Sendable {
    /// Its name, such as `firestore`.
    package var name: String
    /// The address on which it listens.
    package var host: String
    /// Its port.
    package var port: Int
    /// The port of its feed of requests, a WebSocket at `/requests`; nil without a feed.
    package var webSocketPort: Int?

    /// Creates the description of an emulator.
    package init(name: String, host: String, port: Int, webSocketPort: Int? = nil) {
      self.name = name
      self.host = host
      self.port = port
      self.webSocketPort = webSocketPort
    }
  }

  private let emulators: [Emulator]
  private let dataDirectory: EmulatorDataDirectory?
  private let version: String
  private let process: Int32

  /// Creates a hub for running emulators. The hub adds itself to the list.
  /// - Parameter dataDirectory: the emulators' data, for exports; nil for none.
  package init(
    _ emulators: [Emulator], dataDirectory: EmulatorDataDirectory?, version: String, process: Int32
  ) {
    self.emulators = emulators
    self.dataDirectory = dataDirectory
    self.version = version
    self.process = process
  }

  /// The protocols of the hub's port.
  package func protocols(_ limits: PortLimits = PortLimits()) -> PortProtocols {
    PortProtocols(http1: http1(limits))
  }

  package func serve(_ request: HTTPRequest, _ responder: HTTPResponder, on connection: HTTPConnection) {
    guard request.head.method == .POST, request.target.rawPath == "/_admin/export" else {
      return responder.respond(answer(request, on: responder.localAddress))
    }
    responder.start { responder.respond(await export(request)) }
  }

  private func answer(_ request: HTTPRequest, on address: SocketAddress?) -> HTTPResponse {
    let hub = Emulator(name: "hub", host: address?.ipAddress ?? "127.0.0.1", port: address?.port ?? 0)
    switch (request.head.method, request.target.rawPath) {
    case (.OPTIONS, _): return HTTPResponse(status: .ok)
    case (.GET, "/"): return .json(root(hub))
    case (.GET, "/emulators"): return .json(list(emulators + [hub]))
    case (.PUT, "/functions/disableBackgroundTriggers"): return .json(["enabled": .bool(false)])
    case (.PUT, "/functions/enableBackgroundTriggers"): return .json(["enabled": .bool(true)])
    default: return .notFound
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
      var entry: JSONObject = [
        "name": .string(emulator.name), "host": .string(emulator.host), "port": .int(Int64(emulator.port)),
        "listen": .array([.object(address)]), "pid": .int(Int64(process)),
      ]
      if let port = emulator.webSocketPort {
        entry["webSocketHost"] = .string(emulator.host)
        entry["webSocketPort"] = .int(Int64(port))
      }
      object[emulator.name] = .object(entry)
    }
    return object
  }

  /// Returns the file by which local tools find the hub: its version, addresses and process.
  package static func locator(host: String, port: Int, version: String, process: Int32) -> [UInt8] {
    JSONValue.object([
      "version": .string(version), "origins": .array([.string("http://\(authority(host)):\(port)")]),
      "pid": .int(Int64(process)),
    ]).json()
  }

  /// Exports the emulators' data. Rejects requests of web pages, which must not cause files to be written.
  private func export(_ request: HTTPRequest) async -> HTTPResponse {
    guard request.head.headers.first(name: "origin") == nil else {
      return Self.failed("Export cannot be triggered by external callers.", .forbidden)
    }
    guard let dataDirectory else { return Self.failed("No running emulators support import/export.") }
    let body = try? JSONValue(
      json: Array(request.body.readableBytesView), limits: JSONLimits(depth: 4, bytes: 64 << 10))
    guard let path = body?["path"]?.string else {
      return Self.failed("The body must be a JSON object with 'path', the directory to export to.")
    }
    var targets: [String]?
    if let value = body?["targets"], !value.isNull {
      guard let names = value.array?.map(\.string), !names.contains(nil) else {
        return Self.failed("'targets' must be an array of emulators' names.")
      }
      targets = names.compactMap(\.self)
    }
    do {
      try await dataDirectory.export(to: path, targets: targets)
      return .json(["message": .string("OK")])
    } catch {
      return Self.failed("\(error)")
    }
  }

  private static func failed(
    _ message: String, _ status: HTTPResponseStatus = .internalServerError
  ) -> HTTPResponse { .json(["message": .string(message)], status) }

  private static func authority(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
}

extension HTTPResponse {
  /// A JSON object.
  fileprivate static func json(_ object: JSONObject, _ status: HTTPResponseStatus = .ok) -> HTTPResponse {
    .json(status, ByteBuffer(bytes: JSONValue.object(object).json()))
  }
}
