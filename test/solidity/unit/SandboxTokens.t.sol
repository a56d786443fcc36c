// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {SandboxUsdc} from "../../../contracts/mocks/SandboxUsdc.sol";
import {SandboxUsdcProxy} from "../../../contracts/mocks/SandboxUsdcProxy.sol";
import {Platform} from "../support/Platform.sol";
import {IMintableToken} from "../support/Interfaces.sol";

/// @notice The tokens of the sandbox, and a market of the dollar token.
contract SandboxTokensTest is Platform {
    address private constant ADMIN = address(0xAD);
    SandboxUsdc private _usdc;
    SandboxUsdcProxy private _proxy;

    function setUp() public override {
        super.setUp();
        _proxy = SandboxUsdcProxy(
            payable(deploy("SandboxUsdcProxy.sol:SandboxUsdcProxy", abi.encode(_implementation(), ADMIN)))
        );
        _usdc = SandboxUsdc(address(_proxy));
        _usdc.initialize(OWNER);
        vm.startPrank(OWNER);
        _usdc.configureMinter(OWNER, 1_000_000e6);
        _usdc.mint(TAKER, 100_000e6);
        _usdc.mint(MAKER, 100_000e6);
        vm.stopPrank();
    }

    function test_Metadata() external view {
        assertEq(keccak256(bytes(_usdc.symbol())), keccak256("USDC"), "symbol");
        assertEq(_usdc.decimals(), 6, "decimals");
        assertEq(_usdc.totalSupply(), 200_000e6, "supply");
    }

    function test_SwapsLikeAnyOtherToken() external {
        vm.prank(OWNER);
        bytes32 id = book.listMarket(address(base), address(_usdc), 14, 1, 0, MAX_TTL_SEC);
        vm.startPrank(MAKER);
        _usdc.approve(address(custodian), 100_000e6);
        custodian.deposit(address(_usdc), 100_000e6);
        vm.stopPrank();
        _post(_fullRecord(id, Curve(1, uint32(START + 60), 0, 0, _ladder(600_002, 15), _ladder(599_998, 15))));
        vm.startPrank(TAKER);
        _usdc.approve(address(entrypoint), type(uint256).max);
        uint256 got = entrypoint.swap(address(_usdc), address(base), 3000e6, 0, TAKER, START);
        assertEq(_usdc.allowance(TAKER, address(entrypoint)), type(uint256).max - 3000e6, "rewritten allowance");
        uint256 back = entrypoint.swap(address(base), address(_usdc), got, 0, TAKER, START);
        assertEq(_usdc.balanceOf(TAKER), 97_000e6 + back, "there and back");
        vm.stopPrank();
        vm.prank(OWNER);
        _usdc.blacklist(STRANGER);
        vm.prank(TAKER);
        vm.expectRevert(abi.encodeWithSelector(SandboxUsdc.AccountBlacklisted.selector, STRANGER));
        entrypoint.swap(address(base), address(_usdc), 1e18, 0, STRANGER, START);
        vm.prank(OWNER);
        _usdc.pause();
        vm.prank(TAKER);
        vm.expectRevert(SandboxUsdc.Paused.selector);
        entrypoint.swap(address(_usdc), address(base), 1e6, 0, TAKER, START);
    }

    function test_BlacklistKeepsTheBalance() external {
        vm.prank(OWNER);
        _usdc.blacklist(TAKER);
        assertTrue(_usdc.isBlacklisted(TAKER), "listed");
        assertEq(_usdc.balanceOf(TAKER), 100_000e6, "balance");
        vm.prank(TAKER);
        vm.expectRevert(abi.encodeWithSelector(SandboxUsdc.AccountBlacklisted.selector, TAKER));
        _usdc.transfer(MAKER, 1);
        vm.prank(OWNER);
        _usdc.unBlacklist(TAKER);
        vm.prank(TAKER);
        _usdc.transfer(MAKER, 1);
        assertEq(_usdc.balanceOf(MAKER), 100_000e6 + 1, "moved");
    }

    function test_TransferLimits() external {
        vm.startPrank(TAKER);
        vm.expectRevert(
            abi.encodeWithSelector(
                SandboxUsdc.InsufficientBalance.selector,
                TAKER,
                uint256(100_000e6),
                uint256(100_001e6)
            )
        );
        _usdc.transfer(MAKER, 100_001e6);
        _usdc.approve(STRANGER, 5);
        vm.stopPrank();
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(SandboxUsdc.InsufficientAllowance.selector, STRANGER, 5, 6));
        _usdc.transferFrom(TAKER, STRANGER, 6);
    }

    function test_MintersHaveAllowances() external {
        vm.startPrank(OWNER);
        _usdc.configureMinter(STRANGER, 10);
        vm.stopPrank();
        vm.startPrank(STRANGER);
        _usdc.mint(STRANGER, 4);
        vm.expectRevert(abi.encodeWithSelector(SandboxUsdc.MintAllowanceExceeded.selector, STRANGER, 6, 7));
        _usdc.mint(STRANGER, 7);
        vm.expectRevert(abi.encodeWithSelector(SandboxUsdc.NotRole.selector, STRANGER));
        _usdc.configureMinter(STRANGER, 10);
        assertEq(_usdc.balanceOf(STRANGER), 4, "minted");
    }

    function test_Permit() external {
        uint256 key = 0xBEEF;
        address account = vm.addr(key);
        bytes32 structHash = keccak256(
            abi.encode(_usdc.PERMIT_TYPEHASH(), account, address(entrypoint), uint256(77), uint256(0), START)
        );
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", _usdc.DOMAIN_SEPARATOR(), structHash));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        _usdc.permit(account, address(entrypoint), 77, START, v, r, s);
        assertEq(_usdc.allowance(account, address(entrypoint)), 77, "allowance");
        vm.expectRevert(abi.encodeWithSelector(SandboxUsdc.InvalidPermit.selector, account));
        _usdc.permit(account, address(entrypoint), 77, START, v, r, s);
        vm.warp(START + 1);
        vm.expectRevert(abi.encodeWithSelector(SandboxUsdc.PermitExpired.selector, START));
        _usdc.permit(account, address(entrypoint), 77, START, v, r, s);
    }

    function test_AdminOnlyAdministers() external {
        address implementation = _implementation();
        vm.expectRevert(abi.encodeWithSelector(SandboxUsdcProxy.NotAdmin.selector, OWNER));
        vm.prank(OWNER);
        _proxy.upgradeTo(implementation);
        vm.startPrank(ADMIN);
        vm.expectRevert(SandboxUsdcProxy.AdminCannotFallBack.selector);
        _usdc.balanceOf(TAKER);
        _proxy.upgradeTo(implementation);
        assertEq(_proxy.implementation(), implementation, "implementation");
        _proxy.changeAdmin(STRANGER);
        vm.stopPrank();
        assertEq(_proxy.admin(), STRANGER, "admin");
        assertEq(_usdc.balanceOf(TAKER), 100_000e6, "state stays");
    }

    function test_MintableToken() external {
        IMintableToken token = _newToken("cbBTC", 8);
        assertEq(token.decimals(), 8, "decimals");
        token.mint(TAKER, 5);
        assertEq(token.balanceOf(TAKER), 5, "minted");
        vm.prank(TAKER);
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, TAKER));
        token.mint(TAKER, 5);
    }

    function _implementation() private returns (address) {
        return deploy("SandboxUsdc.sol:SandboxUsdc", "");
    }
}
