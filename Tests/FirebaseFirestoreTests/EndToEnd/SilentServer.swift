// A silent server: it accepts connections and never sends any bytes.

import Foundation
import NIOCore
import NIOPosix

struct SilentServer {
  private let channel: any Channel

  init() throws {
    channel = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).wait()
  }

  var port: Int { channel.localAddress?.port ?? 0 }
  func stop() { channel.close(promise: nil) }
}
