// Ends the authentication of open connections whose credentials were revoked.
//
// The search for these connections runs off the sequencer. The caller of a connection may change during the search, so
// the operation that ends the authentication checks each found connection again.

package import Access

extension RealtimeEngine {
  /// Ends the authentication of connections whose credentials were revoked. Their sinks receive
  /// ``RealtimeOutput/authRevoked(_:)``, and the access policy decides their listens again as listens of nobody, a
  /// caller without credentials. Returns before this has happened.
  ///
  /// - Parameter isRevoked: whether a caller's credentials are revoked. Must cover all revocations so far, because it also
  ///   checks callers that authenticate later. Called on any thread, also in batches, so it must be quick.
  package func revoke(where isRevoked: @escaping @Sendable (Principal) -> Bool) {
    revocations.set(isRevoked)
    for database in openDatabases { database.revokeCallers() }
  }

  /// Sets the condition for callers that an earlier process stored with onDisconnect writes. Opening a namespace
  /// performs these writes. Unlike the closure of ``revoke(where:)``, this closure also decides about credentials
  /// that expired long ago.
  ///
  /// - Parameter isRevoked: whether a caller's credentials are revoked. If it throws, the namespace is not opened.
  package func revokeStored(where isRevoked: @escaping @Sendable (Principal) async throws -> Bool) {
    revocations.setStored(isRevoked)
  }
}

extension RealtimeDatabase {
  /// Maximum number of connections in one operation, so that other operations are not delayed.
  private static let maximumRevokedConnections = 512

  /// The delay before a rejected operation is submitted again.
  private static let retryDelay = Duration.milliseconds(100)

  /// Ends the authentication of open connections whose credentials were revoked.
  func revokeCallers() {
    let revocations = runner.executor.revocations
    var revoked = openConnections.filter { revocations.isRevoked($0.submittedCaller) }[...]
    while !revoked.isEmpty {
      revoke(Array(revoked.prefix(Self.maximumRevokedConnections)))
      revoked = revoked.dropFirst(Self.maximumRevokedConnections)
    }
  }

  /// Submits the operation that revokes connections. Repeats it if the store rejects the commit that contains it.
  private func revoke(_ connections: [ConnectionState]) {
    submit(
      RealtimeOperation(
        .revoke(connections),
        from: .call(.administrator) { [weak self] result in
          guard case .failure = result, let self else { return }
          Task {
            try? await Task.sleep(for: Self.retryDelay)
            self.revoke(connections)
          }
        }))
  }
}
