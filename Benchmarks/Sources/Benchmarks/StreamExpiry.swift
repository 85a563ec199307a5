// Times commits while many Listen streams of other clients are idle, and while the streams' credentials expire in the
// same second. This program is the issuer of the tokens, because a server's own tokens are valid for an hour.

import Foundation
import Identity
import JSON
import NIOCore
import NIOHTTP1
import NIOPosix

/// Seconds of commits while streams are idle: every stream gets a heartbeat in this time.
private let idleSeconds = 40.0
/// The server accepts 1,000 streams on a connection.
private let streamsPerConnection = 900

/// The 99th percentile and the longest time of durable commits in microseconds: two figures while streams are idle, and two
/// while they expire.
func commitTimesAtExpiry(_ setting: Setting, streams: Int) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let issuer = try await TokenIssuer.start(on: setting.group)
  let (server, _) = try setting.startProduction(directory, authConfig: issuer.authConfig)
  defer { server.stop() }
  try await issuer.waitUntilTrusted(by: server, setting)
  let probes = (idle: try CommitProbe(server, setting), expiry: try CommitProbe(server, setting))
  defer {
    probes.idle.stop()
    probes.expiry.stop()
  }
  let load = try await ListenLoad.connect(
    server, setting, connections: streams / streamsPerConnection + 2)
  // The time for a sample predicts the time for all streams. The token of the other streams expires after that.
  let sample = max(1, min(streams / 10, 1000))
  let start = ContinuousClock.now
  let longToken = try issuer.token(expiry: issuer.now + 3600)
  for number in 0..<sample {
    try await load.open(stream: number, targets: number..<(number + 1), token: longToken)
  }
  try await load.wait(for: sample)
  let perStream = (ContinuousClock.now - start).seconds / Double(sample)
  let expiry = issuer.now + Int64(perStream * Double(streams) * 1.5 + idleSeconds + 10)
  let token = try issuer.token(expiry: expiry)
  for number in sample..<(sample + streams) {
    try await load.open(stream: number, targets: number..<(number + 1), token: token)
  }
  try await load.wait(for: sample + streams)
  func remaining() -> Double { Double(expiry) - Date().timeIntervalSince1970 }
  guard remaining() > idleSeconds else {
    throw BenchmarkFailure("the streams expire before commits were timed")
  }
  let idle = try await probes.idle.times(seconds: idleSeconds)
  try await Task.sleep(for: .seconds(max(0, remaining() - 1)))
  let times = try await probes.expiry.times(seconds: 2 + Double(streams) / 5000)
  try await waitUntil("\(load.ended.count) of \(streams) streams ended", seconds: 120) {
    load.ended.count >= streams
  }
  let ended = load.ended
  guard ended.count == streams else {
    throw BenchmarkFailure("\(ended.count) of \(streams) streams ended: \(ended.result)")
  }
  await load.close()
  await issuer.stop()
  return [percentile(idle, 0.99), idle.max() ?? 0, percentile(times, 0.99), times.max() ?? 0]
}

/// The same figures without streams.
func commitTimesWithoutStreams(_ setting: Setting) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let (server, _) = try setting.startProduction(directory)
  defer { server.stop() }
  let probe = try CommitProbe(server, setting)
  defer { probe.stop() }
  let times = try await probe.times(seconds: 20)
  let figures = [percentile(times, 0.99), times.max() ?? 0]
  return figures + figures
}

/// An issuer of tokens that publishes its key on loopback.
private struct TokenIssuer: Sendable {
  private static let name = "https://issuer.bench"

  private let key: SigningKey
  private let channel: any Channel

  static func start(on group: any EventLoopGroup) async throws -> TokenIssuer {
    let key = try SigningKey.make(at: Int64(Date().timeIntervalSince1970))
    let keys = JSONValue.object(["keys": .array([.object(try key.publicKey.jwk)])]).json()
    let channel = try await ServerBootstrap(group: group)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(KeysHandler(keys))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    return TokenIssuer(key: key, channel: channel)
  }

  var now: Int64 { Int64(Date().timeIntervalSince1970) }

  var authConfig: String {
    let port = channel.localAddress?.port ?? 0
    return #"{"issuers":{"\#(Self.name)":{"audiences":["bench"],"keys":"http://127.0.0.1:\#(port)/"}}}"#
  }

  func token(expiry: Int64) throws -> String {
    try key.encode([
      "iss": .string(Self.name), "aud": .string("bench"), "sub": .string("ada"), "iat": .int(now),
      "exp": .int(expiry),
    ])
  }

  /// Waits until the server has fetched the key.
  func waitUntilTrusted(by server: ChildProcess, _ setting: Setting) async throws {
    let token = try token(expiry: now + 60)
    for _ in 0..<200 {
      let load = try await ListenLoad.connect(server, setting, connections: 1)
      try await load.open(stream: 0, targets: 0..<1, token: token)
      try? await load.wait(for: 1)
      let isTrusted = load.ended.count == 0
      await load.close()
      if isTrusted { return }
      try await Task.sleep(for: .milliseconds(50))
    }
    throw BenchmarkFailure("the server did not fetch the issuer's key")
  }

  func stop() async { try? await channel.close() }
}

private final class KeysHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let keys: [UInt8]

  init(_ keys: [UInt8]) { self.keys = keys }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .end = unwrapInboundIn(data) else { return }
    let head = HTTPResponseHead(
      version: .http1_1, status: .ok, headers: ["content-length": String(keys.count)])
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: keys)))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }
}
