// Tests the order of requests and responses of one HTTP connection, without a socket.

import Testing

@testable import Ports

@Suite("HTTP request state")
struct HTTPRequestStateTests {
  /// The state after a complete request, when its response has begun.
  private func stateAfterRequest(closes: Bool = false) -> HTTPRequestState {
    var state = HTTPRequestState()
    state.beginRequest()
    state.endRequest()
    state.serve()
    state.beginResponse(closes: closes)
    return state
  }

  @Test("A connection continues with the next request after a complete exchange")
  func nextRequest() {
    var state = stateAfterRequest()
    state.finishResponse()
    let continuation = state.flushedResponse()
    #expect(continuation == .nextRequest)
    #expect(!state.hasRequest && !state.isResponding && !state.isLast)
    state.beginRequest()
    #expect(state.isReceiving && state.acceptsBody)
  }

  @Test("A connection closes after the response to a request that requires the close")
  func lastRequest() {
    var state = stateAfterRequest(closes: true)
    state.finishResponse()
    let continuation = state.flushedResponse()
    #expect(continuation == .close)
    #expect(state.isLast && state.isResponding)
  }

  @Test("A response before the end of the request's body ends the connection after a grace period")
  func responseBeforeEndOfBody() {
    var state = HTTPRequestState()
    state.beginRequest()
    state.beginResponse(closes: false)
    #expect(state.isLast && !state.acceptsBody)
    state.finishResponse()
    // The rest of the body arrives before the response is flushed. The connection stays open until the client can
    // read the response.
    state.endRequest()
    let continuation = state.flushedResponse()
    #expect(continuation == .linger)
    state.linger()
    let stateCloses = state.peerHalfClosed(isAbandoned: false)
    #expect(stateCloses)
  }

  @Test("A half-close ends an idle connection, and a connection whose request is incomplete")
  func halfCloseBeforeResponse() {
    var idle = HTTPRequestState()
    let idleCloses = idle.peerHalfClosed(isAbandoned: false)
    #expect(idleCloses)
    var receiving = HTTPRequestState()
    receiving.beginRequest()
    let receivingCloses = receiving.peerHalfClosed(isAbandoned: false)
    #expect(receivingCloses)
  }

  @Test(
    "After a half-close the connection waits for a pending response, unless the response is no longer needed",
    arguments: [false, true])
  func halfCloseDuringResponse(isAbandoned: Bool) {
    var state = stateAfterRequest()
    let stateCloses = state.peerHalfClosed(isAbandoned: isAbandoned)
    #expect(stateCloses == isAbandoned)
    state.finishResponse()
    let continuation = state.flushedResponse()
    #expect(continuation == .close)
  }
}
