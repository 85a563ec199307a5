// The Firestore port: combines gRPC, REST and WebChannel over HTTP/1.1 and HTTP/2.

package import FirestoreEngine
import FirestoreModel
package import Logging
import NIOCore
package import Ports

extension PortProtocols {
  /// Returns the protocols of the Firestore port: HTTP/2 with gRPC, REST and WebChannel; HTTP/1.1 without gRPC.
  /// - Parameter handlers: handlers of additional HTTP paths.
  package static func firestore(
    _ engine: FirestoreEngine, authentication: FirestoreAuthentication, limits: PortLimits = PortLimits(),
    webChannel: WebChannelLimits = WebChannelLimits(), handlers: [any FirestoreRouteHandler] = [], log: Logger
  ) -> PortProtocols {
    let limits = limits.raised(for: engine.limits)
    let service = FirestoreService(engine: engine, authentication: authentication)
    let http = FirestoreHTTPService(
      rest: FirestoreREST(
        methods: service.methods, log: log, documentBytes: engine.limits.data.documentBytes,
        endTransaction: service.endTransaction(ofRejected:_:)),
      handlers: handlers,
      webChannel: WebChannelService(service, limits, webChannel.raised(for: engine.limits)))
    return PortProtocols(
      http1: http.http1(limits),
      http2: grpcStreams(service.methods, limits: limits, log: log, fallback: http.http2(limits)))
  }
}

extension PortLimits {
  /// Returns these limits, raised by the amount by which the engine's limits exceed those of Cloud Firestore.
  func raised(for limits: EngineLimits) -> PortLimits {
    var port = self
    let document = limits.data.documentBytes - FirestoreLimits.standard.documentBytes
    let request = limits.maximumRequestBytes - EngineLimits.standard.maximumRequestBytes
    // A call that returns a document first reserves capacity for a document of the maximum size. With capacity for only
    // one such document, calls would run one by one, so the queue gets capacity for 16.
    port.http2.expectedResponseBytes += document
    port.http2.maximumQueuedResponseBytes += 16 * document
    port.maximumRequestBody += request
    return port
  }
}

extension WebChannelLimits {
  /// Returns these limits, raised by the amount by which the engine's limits exceed those of Cloud Firestore.
  fileprivate func raised(for limits: EngineLimits) -> WebChannelLimits {
    var webChannel = self
    let request = limits.maximumRequestBytes - EngineLimits.standard.maximumRequestBytes
    // Percent-encoding can triple the size of a WebChannel message.
    webChannel.maximumRequestBody += 3 * request
    webChannel.maximumPendingBytes += 2 * request
    return webChannel
  }
}
