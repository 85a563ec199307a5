// The progress of the requests of one HTTP/1.1 connection or HTTP/2 stream, as a value without I/O. It decides when a
// request may be served, when the next one may follow, and when the connection ends.
//
// Invariants
//   1. One request at a time. The next one begins only after the previous response was flushed.
//   2. No request is served after the last response of a connection.
//   3. If a response begins before the body of its request is complete, that request is the last one of its connection.

/// Tracks one request at a time.
struct HTTPRequestState {
  enum Request {
    case none
    /// The head arrived, the body is incomplete.
    case receiving
    case complete
  }

  enum Response {
    case none
    /// The service has not completed the response: it is computing it or streaming it.
    case pending
    /// The response is written, but not flushed. `requestWasComplete`: whether the complete request had arrived when the
    /// response ended.
    case flushing(requestWasComplete: Bool)
    /// The last response was flushed. The connection waits for the client to stop sending.
    case lingering
  }

  /// How the connection continues after a response.
  enum Continuation {
    case nextRequest
    case close
    /// The client may still be sending: the connection closes when it stops.
    case linger
  }

  private(set) var request = Request.none
  private(set) var response = Response.none
  /// Whether no request follows the current one.
  private(set) var isLast = false
  private(set) var isHalfClosed = false

  /// Whether a request has begun to arrive whose response has not been flushed.
  var hasRequest: Bool { if case .none = request { false } else { true } }

  /// Whether body bytes belong to a request that has no response.
  var acceptsBody: Bool { !isResponding }

  /// Whether a response is pending or being written.
  var isResponding: Bool { if case .none = response { false } else { true } }

  /// Whether a request's body is incomplete.
  var isReceiving: Bool { if case .receiving = request { true } else { false } }

  mutating func beginRequest() {
    precondition(!isResponding, "invariant: requests of a connection are served one at a time")
    request = .receiving
    response = .none
  }

  mutating func endRequest() { request = .complete }

  /// Called when the request is passed to the service.
  mutating func serve() { response = .pending }

  /// Called when the head of a response is written. `closes`: whether the request's head requires the server to close
  /// the connection after the response.
  mutating func beginResponse(closes: Bool) {
    if closes || isReceiving { isLast = true }
    response = .pending
  }

  /// Called when the end of the response is written.
  mutating func finishResponse() {
    guard case .pending = response else {
      preconditionFailure("invariant: a response ends once, after it began")
    }
    response = .flushing(requestWasComplete: !isReceiving)
  }

  /// Called when the response was flushed.
  mutating func flushedResponse() -> Continuation {
    guard case .flushing(let requestWasComplete) = response else {
      preconditionFailure("invariant: a response is flushed once, after it was written")
    }
    guard isLast else {
      request = .none
      response = .none
      return .nextRequest
    }
    return requestWasComplete || isHalfClosed ? .close : .linger
  }

  /// Called when the last response was sent, but the client may still be sending its request. The connection then waits
  /// for the client.
  mutating func linger() { response = .lingering }

  /// Makes the current request the last one of the connection.
  mutating func setLast() { isLast = true }

  /// Called when the client half-closes the connection. Returns whether nothing remains to be sent.
  /// - Parameter isAbandoned: whether the pending response is no longer needed.
  mutating func peerHalfClosed(isAbandoned: Bool) -> Bool {
    isHalfClosed = true
    isLast = true
    return switch response {
    case .none, .lingering: true
    case .pending, .flushing: isAbandoned
    }
  }
}
