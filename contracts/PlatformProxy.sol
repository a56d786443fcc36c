// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";

/// @title PlatformProxy
/// @notice OpenZeppelin's ERC-1967 proxy as it is, compiled with the same settings as what runs behind it, so that the source of everything
/// on the chain can be verified from one compiler input. Whoever owns the implementation's storage upgrades it (UUPS).
contract PlatformProxy is ERC1967Proxy {
    /// @param implementation The code that runs behind this address until the first upgrade.
    /// @param initialization Call of its initializer.
    constructor(address implementation, bytes memory initialization) ERC1967Proxy(implementation, initialization) {}
}
