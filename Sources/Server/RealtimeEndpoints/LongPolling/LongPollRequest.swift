// A long-polling request, parsed from its URL parameters.
//
// Long polling serves browsers without WebSockets. The client polls: it requests a script, which the server
// returns when there is a message. The poll's parameters carry the client's messages, cut into segments.

import NIOHTTP1
import Ports
import RealtimeModel

/// A request of long polling.
enum LongPollRequest: Sendable {
  /// Begin a session.
  case start(Start)
  /// Accept these segments, and respond when there is a message.
  case poll(Poll)
  /// Load the disconnect page into an iframe. When the browser unloads that page, it sends
  /// ``disconnect(id:password:)``.
  case disconnectFrame(id: String, password: String)
  /// End the session, because the browser has unloaded the client's page.
  case disconnect(id: String, password: String)

  struct Start: Sendable {
    var namespace: String
    var host: String
    /// The number at the end of the client's callback function names, digits only; empty if the names have no
    /// number.
    var callback: String
    /// The client's previous session, which the new session ends.
    var lastSession: String?
  }

  struct Poll: Sendable {
    var id: String
    var password: String
    /// The client's number of this poll. The server uses it to detect that one poll overtook another.
    var serial: Int
    var segments: [Segment]
  }

  /// Parses a request.
  ///
  /// - Throws: ``RESTError`` with the reason.
  init(_ head: HTTPRequestHead, _ target: RequestTarget, _ endpoint: RealtimeEndpoint) throws(RESTError) {
    guard head.method == .GET else {
      throw RESTError(.methodNotAllowed, "Long polling uses GET only.")
    }
    if target["start"] == "t" {
      self = .start(try Start(head, target, endpoint))
      return
    }
    let id = target["id"] ?? ""
    let password = target["pw"] ?? ""
    guard LongPollName.isValid(id), LongPollName.isValid(password) else {
      throw RESTError(
        .badRequest, "Long polling needs start=t, or the id and pw that the start was answered with.")
    }
    if target["disconn"] == "t" {
      self = .disconnect(id: id, password: password)
    } else if target["dframe"] == "t" {
      self = .disconnectFrame(id: id, password: password)
    } else {
      let segments = try Segment.all(in: target)
      self = .poll(
        Poll(id: id, password: password, serial: Int(target["ser"] ?? "") ?? 0, segments: segments))
    }
  }
}

extension LongPollRequest.Start {
  fileprivate init(
    _ head: HTTPRequestHead, _ target: RequestTarget, _ endpoint: RealtimeEndpoint
  ) throws(RESTError) {
    if let version = target["v"], version != "5" {
      throw RESTError(
        .badRequest, "Protocol version \(version) is not supported; this server speaks version 5.")
    }
    callback = target["cb"] ?? ""
    // The server inserts the number into a script, so it must not contain code.
    guard callback.utf8.count <= 20, callback.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw RESTError(.badRequest, "cb must be a number.")
    }
    host = head.headers.first(name: "host") ?? ""
    namespace = endpoint.namespace(parameter: target["ns"], host: host)
    lastSession = target["ls"].flatMap { $0.isEmpty ? nil : $0 }
  }
}

extension Segment {
  /// Returns the segments of a poll. The parameters `seg0`, `ts0` and `d0` are number, total and data of the
  /// first segment, `seg1`, `ts1` and `d1` those of the second.
  static func all(in target: RequestTarget) throws(RESTError) -> [Segment] {
    // With a dictionary, parsing thousands of segments takes linear time. A linear search for each parameter
    // would block the event loop.
    let values = Dictionary(target.parameters.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
    var segments: [Segment] = []
    while let number = values["seg\(segments.count)"] {
      let index = segments.count
      guard let number = Int(number), let total = Int(values["ts\(index)"] ?? ""), number >= 0, total > 0,
        let text = values["d\(index)"]
      else {
        throw RESTError(
          .badRequest, "seg\(index) needs a number from 0, ts\(index) one from 1, and d\(index) its text.")
      }
      segments.append(Segment(number: number, total: total, text: text))
    }
    return segments
  }
}

/// Names and passwords of long-polling sessions: 22 random letters and digits, about 130 bits.
enum LongPollName {
  static func make() -> String { RandomName.make(22) }

  /// Whether a string can be inserted into a script or a page without being interpreted as code.
  static func isValid(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count) && RandomName.isMadeOfSymbols(text)
  }
}
