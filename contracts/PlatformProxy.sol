// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";
import {ERC1967Utils} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Utils.sol";

/// @title PlatformProxy
/// @notice OpenZeppelin's ERC-1967 proxy, compiled with the same settings as the implementations behind it, so that all code on the chain
/// can be verified from one compiler input. The owner that the implementation keeps in this proxy's storage upgrades it (UUPS). Only the
/// fallback, which every call goes through, is written here instead of inherited, for less gas.
contract PlatformProxy is ERC1967Proxy {
    /// @param implementation The code that runs behind this address until the first upgrade.
    /// @param initialization Call of its initializer.
    constructor(address implementation, bytes memory initialization) ERC1967Proxy(implementation, initialization) {}

    fallback() external payable override {
        bytes32 slot = ERC1967Utils.IMPLEMENTATION_SLOT;
        // Same as _delegate(_implementation()). It overwrites memory from 0x00 on, since no code of the compiler runs afterwards.
        assembly ("memory-safe") {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), sload(slot), 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if done {
                return(0, returndatasize())
            }
            revert(0, returndatasize())
        }
    }
}
